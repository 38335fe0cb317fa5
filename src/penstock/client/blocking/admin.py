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
from penstock.common.hints import with_hints
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
    """Looks after topics, settings, groups, users, rules and transactions. Calls wait for the outcome.

    >>> with Admin(bootstrap_servers="localhost:9092") as admin:
    ...     admin.create_topic("orders", partitions=6)

    Options are keywords, or stand in `config` under dotted names, such as request_timeout_ms (30,000),
    default_api_timeout_ms (60,000), security_protocol, sasl_mechanism, sasl_username, sasl_password and
    ssl_cafile. `penstock.client.AdminOptions` describes all of them.
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
        """Return the id that a broker has given this client, by which its metrics are known (KIP-714).

        It is text, as Kafka prints ids. Waits for `timeout` seconds at most, by default 30.

        Raises:
            ConfigError: ``enable.metrics.push`` is false.
            UnsupportedVersionError: the broker that was asked for metadata takes no metrics.
            NetworkError, RequestTimeoutError: no broker answers, or not in time.
        """
        return self._run(self._admin.client_instance_id(timeout))

    def stats(self) -> Statistics:
        """Return what this client has done since it was made, and what it has in hand. From any thread.

        ``statistics.interval.ms`` and ``stats_cb`` have it reported again and again.
        """
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
        """Set quotas of an entity; None for a quota removes it (KIP-546).

        `entity` has names by their kinds, which are ``user``, ``client-id`` and ``ip``; None is the default
        of a kind, for all that have no quotas of their own.
        """
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
        """Create one topic. Raises as `create_topics`."""
        self._run(self._admin.create_topic(name, partitions, replication_factor, config))

    def create_topics(self, topics: Iterable[NewTopic | str]) -> None:
        """Create topics, and wait until every partition has a leader.

        Raises:
            KafkaError: the first topic that could not be created (36: it exists already).
            UnsupportedVersionError: the broker is older than 0.10.1.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        self._run(self._admin.create_topics(topics))

    def delete_topics(self, names: Collection[str]) -> None:
        """Delete topics and everything in them.

        Raises:
            KafkaError: the first topic that could not be deleted (3: there is none).
            UnsupportedVersionError: the broker is older than 0.10.1.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        self._run(self._admin.delete_topics(names))

    def list_topics(self, *, include_internal: bool = False) -> list[str]:
        """The names of all topics, sorted. Raises NetworkError or RequestTimeoutError."""
        return self._run(self._admin.list_topics(include_internal=include_internal))

    def describe_topics(self, names: Collection[str]) -> list[TopicDescription]:
        """Describe topics, in the order given.

        Raises:
            KafkaError: a topic does not exist, or may not be seen.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        return self._run(self._admin.describe_topics(names))

    def describe_cluster(self) -> ClusterDescription:
        """The cluster's id, controller and brokers. Raises NetworkError or RequestTimeoutError."""
        return self._run(self._admin.describe_cluster())

    def describe_config(
        self, topic: str | None = None, *, broker: int | None = None
    ) -> dict[str, ConfigValue]:
        """The settings of a topic, or of a broker.

        Raises:
            KafkaError: there is no such topic or broker.
            UnsupportedVersionError: the broker is older than 0.11.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        return self._run(self._admin.describe_config(topic, broker=broker))

    def create_partitions(self, topic: str, count: int) -> None:
        """Let a topic grow to `count` partitions altogether.

        Records stay where they are: keys that come from now on may go to other partitions.

        Raises:
            KafkaError: there is no such topic (3), or it has as many already (37).
            UnsupportedVersionError: the broker is older than 1.0.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
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
        """Change settings of a topic, of one broker, or of all brokers: all the changes or none.

        `client_metrics` is the name of a subscription to metrics of clients (KIP-714), whose settings are
        `metrics`, `interval.ms` and `match`; it is there as long as it has settings.

        `set` gives values, `delete` goes back to defaults, `append` and `subtract` change the items of
        lists such as `cleanup.policy`.

        Raises:
            KafkaError: there is no such topic (3), a name or a value is wrong (40), or the setting cannot
                be changed while a broker runs (42).
            UnsupportedVersionError: the broker is older than 2.3.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
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
        """Delete the records below an offset of each partition; return where each begins now.

        The offset `HIGH_WATERMARK` (-1) deletes everything there is.

        Raises:
            KafkaError: an offset is past the end (1), there is no such partition (3), or the topic is
                compacted (44).
            UnsupportedVersionError: the broker is older than 0.11.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        return self._run(self._admin.delete_records(offsets))

    def describe_log_dirs(self, broker: int | None = None) -> list[LogDirectory]:
        """The data directories of one broker, or of all, with the size of every partition.

        Raises:
            KafkaError: a directory cannot be read (56).
            UnsupportedVersionError: the broker is older than 1.0.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        return self._run(self._admin.describe_log_dirs(broker))

    def list_offsets(
        self, questions: Mapping[TopicPartition, int | datetime], *, isolation: str = "read_uncommitted"
    ) -> Answers:
        """One offset per partition: earliest, latest or by time, in milliseconds or as a datetime.

        Raises:
            KafkaError: a partition does not exist, or may not be read.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        return self._run(self._admin.list_offsets(questions, isolation=isolation))

    def list_groups(self, *, states: Collection[str] = ()) -> list[GroupListing]:
        """All groups of the cluster, or those in the given states (``Stable``, ``Empty``), by name.

        Raises:
            KafkaError: a broker refuses.
            NetworkError, RequestTimeoutError: a broker does not answer.
        """
        return self._run(self._admin.list_groups(states=states))

    def describe_groups(self, group_ids: Iterable[str]) -> list[GroupDescription]:
        """Describe groups, in the order given.

        Raises:
            KafkaError: a group does not exist (69), or may not be seen.
            NetworkError, RequestTimeoutError: no coordinator answers in time.
        """
        return self._run(self._admin.describe_groups(group_ids))

    def delete_groups(self, group_ids: Iterable[str]) -> None:
        """Delete groups that have no members, with their offsets.

        Raises:
            KafkaError: the first group that could not be deleted (68: it has members; 69: it does not exist).
            UnsupportedVersionError: the broker is older than 1.1.
            NetworkError, RequestTimeoutError: no coordinator answers in time.
        """
        self._run(self._admin.delete_groups(group_ids))

    def list_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition | tuple[str, int]] | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """What a group has committed, for all partitions or some.

        Raises:
            KafkaError: the group may not be read.
            NetworkError, RequestTimeoutError: no coordinator answers in time.
        """
        return self._run(self._admin.list_group_offsets(group_id, partitions))

    def alter_group_offsets(self, group_id: str, offsets: Committable) -> None:
        """Set offsets of a group without members; the group is made where it does not exist.

        Raises:
            KafkaError: the group has members, or a topic does not exist.
            ConfigError: an offset is negative.
            NetworkError, RequestTimeoutError: no coordinator answers in time.
        """
        self._run(self._admin.alter_group_offsets(group_id, offsets))

    def delete_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition | tuple[str, int]]
    ) -> None:
        """Delete the committed offsets of a group for some partitions, of topics that no member subscribes
        to.

        Raises:
            KafkaError: the group does not exist (69), or reads a topic (86).
            UnsupportedVersionError: the broker is older than 2.4.
            NetworkError, RequestTimeoutError: no coordinator answers in time.
        """
        self._run(self._admin.delete_group_offsets(group_id, partitions))

    def close(self) -> None:
        """Close the connections."""
        if self._process is Blocking._this_process:
            self._run(self._admin.close())
