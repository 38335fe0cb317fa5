"""The blocking admin client: that for asyncio, on the background loop."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Unpack

from penstock.client.admin.admin import (
    BROKER_DEFAULT,
    AsyncAdmin,
    ClusterDescription,
    ConfigValue,
    NewTopic,
    TopicDescription,
)
from penstock.client.admin.alterations import LogDirectory
from penstock.client.admin.groups import GroupDescription, GroupListing
from penstock.client.blocking.base import Blocking
from penstock.client.blocking.transaction_admin import BlockingTransactionAdministration
from penstock.client.fetch.offsets import Answers
from penstock.client.group.offsets import Committable, OffsetAndMetadata
from penstock.common.hints.classes import with_hints
from penstock.model import TopicPartition
from penstock.security.acls import EVERY_ACL, Acl, AclFilter

if TYPE_CHECKING:
    from datetime import datetime

    from penstock.client.admin.security import QuotaEntity
    from penstock.client.options import AdminOptions
    from penstock.client.statistics import Statistics
    from penstock.security.secrets import Secret


@with_hints("Admin")
class Admin(BlockingTransactionAdministration):
    """Manages topics, settings and groups. See `AsyncAdmin` for what each call returns and raises.

    >>> with Admin(bootstrap_servers="localhost:9092") as admin:
    ...     admin.create_topic("orders", partitions=6)

    Options: Kafka's dotted names in `config`, or the same with underscores as keywords: those of
    `penstock.client.AdminOptions`, which ``help()`` lists.
    """

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] | None = None,
        config: AdminOptions | Mapping[str, object] | None = None,
        **options: Unpack[AdminOptions],
    ) -> None:
        super().__init__()
        self._admin = AsyncAdmin(bootstrap_servers, config, **options)

    def _twin(self) -> object:
        return self._admin

    def _start(self) -> None:
        self._run(self._admin.start())

    def client_instance_id(self, timeout: float | None = None) -> str:
        """The id by which brokers know this client's metrics. See `AsyncAdmin.client_instance_id`."""
        return self._run(self._admin.client_instance_id(timeout))

    def stats(self) -> Statistics:
        """Return what this client has done since it was made. See `AsyncAdmin.stats`."""
        return self._admin.stats()

    def create_acls(self, acls: Iterable[Acl]) -> None:
        """Add access control entries; those that are there already stay once."""
        self._run(self._admin.create_acls(acls))

    def list_acls(self, wanted: AclFilter = EVERY_ACL) -> list[Acl]:
        """The access control entries that a filter selects, by default all."""
        return self._run(self._admin.list_acls(wanted))

    def delete_acls(self, filters: Sequence[AclFilter]) -> list[Acl]:
        """Remove the access control entries that the filters select; return them."""
        return self._run(self._admin.delete_acls(filters))

    def list_users(self, names: Sequence[str] = ()) -> dict[str, dict[str, int]]:
        """Users with SCRAM credentials, by default all: mechanisms, each with its iterations."""
        return self._run(self._admin.list_users(names))

    def set_password(
        self,
        user: str,
        password: str | Secret,
        mechanisms: Sequence[str] = ("SCRAM-SHA-256", "SCRAM-SHA-512"),
        iterations: int = 4096,
    ) -> None:
        """Give a user a password, for these mechanisms. The password itself is not sent."""
        self._run(self._admin.set_password(user, password, mechanisms, iterations))

    def delete_user(self, user: str, mechanisms: Sequence[str] | None = None) -> None:
        """Remove the credentials of a user, for these mechanisms or for all that there are."""
        self._run(self._admin.delete_user(user, mechanisms))

    def set_user_quotas(self, user: str | None, quotas: Mapping[str, float | None]) -> None:
        """Set quotas of a user (None: of all that have none of their own); None for a quota removes it."""
        self._run(self._admin.set_user_quotas(user, quotas))

    def set_quotas(self, entity: Mapping[str, str | None], quotas: Mapping[str, float | None]) -> None:
        """Set quotas of an entity; None for a quota removes it. See `AsyncAdmin.set_quotas`."""
        self._run(self._admin.set_quotas(entity, quotas))

    def list_quotas(self) -> dict[QuotaEntity, dict[str, float]]:
        """All quotas that are set: by entity, and then by name."""
        return self._run(self._admin.list_quotas())

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        replication_factor: int = BROKER_DEFAULT,
        config: Mapping[str, str] | None = None,
    ) -> None:
        """Create one topic, and wait until it can be used."""
        self._run(self._admin.create_topic(name, partitions, replication_factor, config))

    def create_topics(self, topics: Iterable[NewTopic | str]) -> None:
        """Create topics, and wait until they can be used."""
        self._run(self._admin.create_topics(topics))

    def delete_topics(self, names: Collection[str]) -> None:
        """Delete topics and everything in them."""
        self._run(self._admin.delete_topics(names))

    def list_topics(self, *, include_internal: bool = False) -> list[str]:
        """The names of all topics, sorted."""
        return self._run(self._admin.list_topics(include_internal=include_internal))

    def describe_topics(self, names: Collection[str]) -> list[TopicDescription]:
        """Describe topics, in the order given."""
        return self._run(self._admin.describe_topics(names))

    def describe_cluster(self) -> ClusterDescription:
        """The cluster's id, controller and brokers."""
        return self._run(self._admin.describe_cluster())

    def describe_config(
        self, topic: str | None = None, *, broker: int | None = None
    ) -> dict[str, ConfigValue]:
        """The settings of a topic, or of a broker."""
        return self._run(self._admin.describe_config(topic, broker=broker))

    def create_partitions(self, topic: str, count: int) -> None:
        """Let a topic grow to `count` partitions altogether."""
        self._run(self._admin.create_partitions(topic, count))

    def alter_config(
        self,
        topic: str | None = None,
        *,
        broker: int | None = None,
        all_brokers: bool = False,
        client_metrics: str | None = None,
        set: Mapping[str, object] | None = None,
        delete: Collection[str] = (),
        append: Mapping[str, object] | None = None,
        subtract: Mapping[str, object] | None = None,
        validate_only: bool = False,
    ) -> None:
        """Change settings of a topic, of brokers, or of a subscription to metrics: all changes or none."""
        self._run(
            self._admin.alter_config(
                topic,
                broker=broker,
                all_brokers=all_brokers,
                client_metrics=client_metrics,
                set=set,
                delete=delete,
                append=append,
                subtract=subtract,
                validate_only=validate_only,
            )
        )

    def delete_records(
        self, offsets: Mapping[TopicPartition | tuple[str, int], int]
    ) -> dict[TopicPartition, int]:
        """Delete the records below an offset of each partition (-1: all); return where each begins now."""
        return self._run(self._admin.delete_records(offsets))

    def describe_log_dirs(self, broker: int | None = None) -> list[LogDirectory]:
        """The data directories of one broker, or of all, with the size of every partition."""
        return self._run(self._admin.describe_log_dirs(broker))

    def list_offsets(
        self, questions: Mapping[TopicPartition, int | datetime], *, isolation: str = "read_uncommitted"
    ) -> Answers:
        """One offset per partition: earliest, latest or by time."""
        return self._run(self._admin.list_offsets(questions, isolation=isolation))

    def list_groups(self, *, states: Collection[str] = ()) -> list[GroupListing]:
        """All groups of the cluster, or those in the given states, by name."""
        return self._run(self._admin.list_groups(states=states))

    def describe_groups(self, group_ids: Iterable[str]) -> list[GroupDescription]:
        """Describe groups and their members, in the order given."""
        return self._run(self._admin.describe_groups(group_ids))

    def delete_groups(self, group_ids: Iterable[str]) -> None:
        """Delete groups that have no members, with their offsets."""
        self._run(self._admin.delete_groups(group_ids))

    def list_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition | tuple[str, int]] | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """What a group has committed, for all partitions or some."""
        return self._run(self._admin.list_group_offsets(group_id, partitions))

    def alter_group_offsets(self, group_id: str, offsets: Committable) -> None:
        """Set offsets of a group without members."""
        self._run(self._admin.alter_group_offsets(group_id, offsets))

    def delete_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition | tuple[str, int]]
    ) -> None:
        """Delete the committed offsets of a group for some partitions."""
        self._run(self._admin.delete_group_offsets(group_id, partitions))

    def close(self) -> None:
        """Close the connections."""
        if self._process is Blocking._this_process:
            self._run(self._admin.close())
