"""The blocking admin client: that for asyncio, on the background loop."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Unpack

from penstock.client.admin.admin import AsyncAdmin, ClusterDescription
from penstock.client.admin.configs import ConfigValue
from penstock.client.admin.groups import GroupDescription, GroupListing
from penstock.client.admin.logs import LogDirectory
from penstock.client.admin.share_groups import ShareGroupDescription, ShareGroupOffset
from penstock.client.admin.streams_groups import StreamsGroupDescription
from penstock.client.admin.topics import BROKER_DEFAULT, NewTopic, TopicDescription
from penstock.client.admin.transactions import (
    HANGING_AGE_MS,
    HangingTransaction,
    PartitionProducer,
    TransactionDescription,
    TransactionListing,
)
from penstock.client.blocking.base import Blocking
from penstock.client.fetch.offsets import Answers
from penstock.client.group.offsets import Committable, OffsetAndMetadata
from penstock.client.transactions.steps import TransactionCoordinates
from penstock.common.hints import with_hints
from penstock.model import TopicPartition
from penstock.security.acls import EVERY_ACL, Acl, AclFilter

if TYPE_CHECKING:
    from datetime import datetime

    from penstock.client.admin.security import QuotaEntity
    from penstock.client.cluster.instance_id import HasInstanceId
    from penstock.client.options import AdminOptions
    from penstock.client.statistics import Statistics
    from penstock.security.secrets import Secret


@with_hints("Admin")
class Admin(Blocking):
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

    def _twin(self) -> HasInstanceId:
        return self._admin

    def _start(self) -> None:
        self._run(self._admin.start())

    def stats(self) -> Statistics:
        """Return what this client has done since it was made, and what it has in hand. From any thread.

        ``statistics.interval.ms`` and ``stats_cb`` have it reported again and again.
        """
        return self._admin.stats()

    def create_acls(self, acls: Iterable[Acl]) -> None:
        """Add access control entries; those that are there already stay once."""
        self._run(self._admin.create_acls(acls))

    def list_acls(self, wanted: AclFilter = EVERY_ACL) -> list[Acl]:
        """Return the access control entries that a filter selects, by default all."""
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
        """Return all quotas that are set: by entity, and then by name."""
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
        """Return the names of all topics, sorted. Raises NetworkError or RequestTimeoutError."""
        return self._run(self._admin.list_topics(include_internal=include_internal))

    def describe_topics(self, names: Collection[str]) -> list[TopicDescription]:
        """Describe topics, in the order given.

        Raises:
            KafkaError: a topic does not exist, or may not be seen.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        return self._run(self._admin.describe_topics(names))

    def describe_cluster(self) -> ClusterDescription:
        """Return the cluster's id, controller and brokers. Raises NetworkError or RequestTimeoutError."""
        return self._run(self._admin.describe_cluster())

    def describe_config(
        self, topic: str | None = None, *, broker: int | None = None, group: str | None = None
    ) -> dict[str, ConfigValue]:
        """Return the settings of a topic, of a broker, or of a group of the newer protocols.

        Raises:
            KafkaError: there is no such topic or broker.
            UnsupportedVersionError: the broker is older than 0.11.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        return self._run(self._admin.describe_config(topic, broker=broker, group=group))

    def create_partitions(self, topic: str, count: int) -> None:
        """Add partitions to a topic, up to `count` in all.

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
        group: str | None = None,
        set: Mapping[str, object] | None = None,
        delete: Collection[str] = (),
        append: Mapping[str, object] | None = None,
        subtract: Mapping[str, object] | None = None,
        validate_only: bool = False,
    ) -> None:
        """Change settings of a topic, a group, one broker, or all brokers: all the changes or none.

        `client_metrics` is the name of a subscription to metrics of clients (KIP-714), whose settings are
        `metrics`, `interval.ms` and `match`; it is there as long as it has settings.

        `group` is a share, consumer or streams group, which need not exist yet; settings of share groups are
        `share.auto.offset.reset`, `share.record.lock.duration.ms` and others (Kafka 4.2).

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
                group=group,
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
        """Return the data directories of one broker, or of all, with the size of every partition.

        Raises:
            KafkaError: a directory cannot be read (56).
            UnsupportedVersionError: the broker is older than 1.0.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        return self._run(self._admin.describe_log_dirs(broker))

    def list_offsets(
        self, questions: Mapping[TopicPartition, int | datetime], *, isolation: str = "read_uncommitted"
    ) -> Answers:
        """Return one offset per partition: earliest, latest or by time, in milliseconds or as a datetime.

        Raises:
            KafkaError: a partition does not exist, or may not be read.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        return self._run(self._admin.list_offsets(questions, isolation=isolation))

    def list_groups(self, *, states: Collection[str] = ()) -> list[GroupListing]:
        """Return all groups of the cluster, or those in the given states (``Stable``, ``Empty``), by name.

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
        """Return the committed offsets of a group, for all partitions or some.

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

    # -- streams groups

    def list_streams_groups(self, *, states: Collection[str] = ()) -> list[GroupListing]:
        """Return all streams groups of the cluster (KIP-1071), or those in the given states (``Stable``,
        ``Empty``, ``NotReady``, ``Assigning``, ``Reconciling``), by name.

        Raises:
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        return self._run(self._admin.list_streams_groups(states=states))

    def describe_streams_groups(self, group_ids: Iterable[str]) -> list[StreamsGroupDescription]:
        """Describe streams groups, with their topologies and tasks, in the order given.

        Raises:
            KafkaError: a group does not exist or is no streams group (69), or may not be seen.
            UnsupportedVersionError: the cluster has no streams groups.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        return self._run(self._admin.describe_streams_groups(group_ids))

    # -- share groups

    def list_share_groups(self, *, states: Collection[str] = ()) -> list[GroupListing]:
        """Return all share groups of the cluster, or those in the given states (``Stable``, ``Empty``), by
        name.

        Raises:
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        return self._run(self._admin.list_share_groups(states=states))

    def describe_share_groups(self, group_ids: Iterable[str]) -> list[ShareGroupDescription]:
        """Describe share groups, in the order given.

        Raises:
            KafkaError: a group does not exist or is no share group (69), or may not be seen.
            UnsupportedVersionError: the cluster has no share groups.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        return self._run(self._admin.describe_share_groups(group_ids))

    def list_share_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition | tuple[str, int]] | None = None
    ) -> dict[TopicPartition, ShareGroupOffset]:
        """Return the start offset and the lag of a share group, in all its partitions or some.

        Raises:
            KafkaError: the group or a topic may not be read.
            UnsupportedVersionError: the cluster has no share groups.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        return self._run(self._admin.list_share_group_offsets(group_id, partitions))

    def alter_share_group_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, int] | Mapping[tuple[str, int], int]
    ) -> None:
        """Set the start offsets of a share group without members; it is made if it does not exist.

        Locks and delivery counts of the partitions are gone after that.

        Raises:
            KafkaError: the group has members (68), or there is no such topic (3).
            UnsupportedVersionError: the cluster has no share groups.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        self._run(self._admin.alter_share_group_offsets(group_id, offsets))

    def delete_share_group_offsets(self, group_id: str, topics: Collection[str]) -> None:
        """Remove what a share group without members has of topics: it begins them anew, if it reads them.

        Raises:
            KafkaError: the group has members (68), does not exist (69), or has nothing of a topic (3).
            UnsupportedVersionError: the cluster has no share groups.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        self._run(self._admin.delete_share_group_offsets(group_id, topics))

    def list_transactions(
        self,
        *,
        states: Collection[str] = (),
        producer_ids: Collection[int] = (),
        longer_than_ms: float | None = None,
        pattern: str | None = None,
    ) -> list[TransactionListing]:
        """Return all transactional ids of the cluster, by name, or those that every given filter selects.

        `states` are names as in `TransactionDescription.state`; `longer_than_ms` selects transactions that
        have been running for longer; `pattern` is a regular expression for the whole id.

        Raises:
            KafkaError: a broker refuses; 128: the pattern is none.
            UnsupportedVersionError: a broker is older than Kafka 3.0, or 3.8 or 4.1 for the last filters.
            ConfigError: a state does not exist.
            NetworkError, RequestTimeoutError: a broker does not answer.
        """
        return self._run(
            self._admin.list_transactions(
                states=states, producer_ids=producer_ids, longer_than_ms=longer_than_ms, pattern=pattern
            )
        )

    def describe_transactions(self, transactional_ids: Iterable[str]) -> list[TransactionDescription]:
        """Describe transactional ids, in the order given.

        Raises:
            KafkaError: an id is not known (105), or may not be seen (53).
            UnsupportedVersionError: the coordinator is older than Kafka 3.0.
            NetworkError, RequestTimeoutError: no coordinator answers in time.
        """
        return self._run(self._admin.describe_transactions(transactional_ids))

    def end_transaction(self, coordinates: TransactionCoordinates, *, commit: bool) -> None:
        """Commit or abort a prepared transaction by its coordinates, from any process.

        For what `Producer.prepare_transaction` has returned, wherever that producer is now. It may be
        repeated, until the transactional id is used again: the coordinator has the outcome. All records
        must have been acknowledged. Nothing is initialized, so that no producer is fenced.

        Raises:
            TransactionAbortableError: a commit came too late; the transaction is aborted, mostly since it
                ran into its timeout. Its work has to be done again.
            ProducerFencedError: the id is used by a newer producer, or has expired. With
                ``transaction.version`` below 2 also: the transaction ran into its timeout. It is not
                known here whether it was committed before that.
            TransactionFatalError: an abort of what is committed, or a refusal.
            NetworkError, RequestTimeoutError: no coordinator answers in time. Repeat the call.
        """
        self._run(self._admin.end_transaction(coordinates, commit=commit))

    def fence_producer(self, transactional_id: str) -> TransactionCoordinates:
        """Abort the open transaction of a transactional id, and fence the producer that has the id now.

        As a new producer of the id does when it starts. Returns the producer id and epoch given out for it.

        Raises:
            KafkaError: the id may not be used (53), or is refused.
            RequestTimeoutError: the transaction is not over within ``default.api.timeout.ms``.
            NetworkError: no coordinator answers.
        """
        return self._run(self._admin.fence_producer(transactional_id))

    def describe_producers(
        self, partitions: Iterable[TopicPartition | tuple[str, int]], *, broker: int | None = None
    ) -> dict[TopicPartition, list[PartitionProducer]]:
        """Return the producers that have written to partitions and are kept there, as of the leaders.

        `broker` asks that replica instead.

        Raises:
            ConfigError: the cluster has no such broker.
            KafkaError: a partition does not exist (3), is not at that broker (6), or may not be read (29).
            UnsupportedVersionError: a broker is older than Kafka 2.8.
            NetworkError, RequestTimeoutError: a broker does not answer.
        """
        return self._run(self._admin.describe_producers(partitions, broker=broker))

    def find_hanging_transactions(
        self,
        partitions: Iterable[TopicPartition | tuple[str, int]],
        *,
        older_than_ms: float = HANGING_AGE_MS,
    ) -> list[HangingTransaction]:
        """Transactions that are open in one of these partitions, and that no coordinator will end.

        Such a transaction keeps ``read_committed`` readers waiting for ever. It is one whose last record is
        older than `older_than_ms`, and whose producer has no transactional id, or one whose coordinator does
        not count the partition in. Raises as `describe_producers` and `list_transactions`.
        """
        return self._run(self._admin.find_hanging_transactions(partitions, older_than_ms=older_than_ms))

    def abort_hanging_transaction(
        self, partition: TopicPartition | tuple[str, int], start_offset: int
    ) -> PartitionProducer:
        """Write an abort marker for the transaction that is open in a partition from `start_offset` on.

        For hanging transactions only (`find_hanging_transactions`): one that a coordinator has is better
        ended by a producer that takes its id, since the other partitions keep it open. Returns the producer.

        Raises:
            ConfigError: no transaction begins there.
            KafkaError: the partition has gone on (47, 52), or it is not allowed (31).
            NetworkError, RequestTimeoutError: the leader does not answer.
        """
        return self._run(self._admin.abort_hanging_transaction(partition, start_offset))

    def write_abort_marker(
        self,
        partition: TopicPartition | tuple[str, int],
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
    ) -> None:
        """Abort the open transaction of a producer in one partition. A wrong `coordinator_epoch` does harm.

        With one above the real one, the partition refuses every later marker of the producer's coordinator.
        -1 stands for 0. Raises as `abort_hanging_transaction`.
        """
        self._run(self._admin.write_abort_marker(partition, producer_id, producer_epoch, coordinator_epoch))

    def close(self) -> None:
        """Close the connections."""
        if self._process is Blocking._this_process:
            self._run(self._admin.close())
