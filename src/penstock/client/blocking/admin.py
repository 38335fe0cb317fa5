"""The blocking admin client, which runs the asyncio admin client on the background loop."""

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
    """Manages topics, settings, groups, users, ACLs and transactions. Each call waits for its outcome.

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
        """Return a snapshot of this client's counters and connections. Any thread may call this method.

        To get snapshots at intervals, set ``statistics.interval.ms`` and ``stats_cb``.
        """
        return self._admin.stats()

    def create_acls(self, acls: Iterable[Acl]) -> None:
        """Add access control entries. An entry that exists already is left as it is."""
        self._run(self._admin.create_acls(acls))

    def list_acls(self, wanted: AclFilter = EVERY_ACL) -> list[Acl]:
        """Return the access control entries that match a filter. Without a filter, return all entries."""
        return self._run(self._admin.list_acls(wanted))

    def delete_acls(self, filters: Sequence[AclFilter]) -> list[Acl]:
        """Remove the access control entries that match any of the filters, and return them."""
        return self._run(self._admin.delete_acls(filters))

    def list_users(self, names: Sequence[str] = ()) -> dict[str, dict[str, int]]:
        """Return users that have SCRAM credentials, by default all.

        The result is a dict from user to a dict from SCRAM mechanism to iteration count.
        """
        return self._run(self._admin.list_users(names))

    def set_password(
        self,
        user: str,
        password: str | Secret,
        mechanisms: Sequence[str] = ("SCRAM-SHA-256", "SCRAM-SHA-512"),
        iterations: int = 4096,
    ) -> None:
        """Set a user's SCRAM password for these mechanisms.

        The client sends salted hashes, never the password.
        """
        self._run(self._admin.set_password(user, password, mechanisms, iterations))

    def delete_user(self, user: str, mechanisms: Sequence[str] | None = None) -> None:
        """Remove a user's SCRAM credentials for these mechanisms, by default for all mechanisms."""
        self._run(self._admin.delete_user(user, mechanisms))

    def set_user_quotas(self, user: str | None, quotas: Mapping[str, float | None]) -> None:
        """Set quotas of a user; if `user` is None, the default quotas of users without their own.

        The value None removes a quota.
        """
        self._run(self._admin.set_user_quotas(user, quotas))

    def set_quotas(self, entity: Mapping[str, str | None], quotas: Mapping[str, float | None]) -> None:
        """Set quotas of an entity (KIP-546). The value None removes a quota.

        `entity` maps entity types (``user``, ``client-id``, ``ip``) to names. The name None stands for the
        default entity of that type, whose quotas apply to every name without quotas of its own.
        """
        self._run(self._admin.set_quotas(entity, quotas))

    def list_quotas(self) -> dict[QuotaEntity, dict[str, float]]:
        """Return all quotas that are set: a dict from entity to a dict from quota name to value.

        The entities are those of `set_quotas`.
        """
        return self._run(self._admin.list_quotas())

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        replication_factor: int = BROKER_DEFAULT,
        config: Mapping[str, str] | None = None,
    ) -> None:
        """Create one topic, and wait until every partition has a leader. Raises as `create_topics`."""
        self._run(self._admin.create_topic(name, partitions, replication_factor, config))

    def create_topics(self, topics: Iterable[NewTopic | str]) -> None:
        """Create topics, and wait until every partition has a leader.

        Raises:
            KafkaError: a topic could not be created (36: it exists already). The error is about the first
                such topic.
            UnsupportedVersionError: the broker is older than 0.10.1.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        self._run(self._admin.create_topics(topics))

    def delete_topics(self, names: Collection[str]) -> None:
        """Delete topics and all their records.

        Raises:
            KafkaError: a topic could not be deleted (3: it does not exist). The error is about the first such
                topic.
            UnsupportedVersionError: the broker is older than 0.10.1.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        self._run(self._admin.delete_topics(names))

    def list_topics(self, *, include_internal: bool = False) -> list[str]:
        """Return the names of all topics, sorted. Raises NetworkError or RequestTimeoutError."""
        return self._run(self._admin.list_topics(include_internal=include_internal))

    def describe_topics(self, names: Collection[str]) -> list[TopicDescription]:
        """Return descriptions of topics, in the order given.

        Raises:
            KafkaError: a topic does not exist, or the client is not authorized to describe it.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        return self._run(self._admin.describe_topics(names))

    def describe_cluster(self) -> ClusterDescription:
        """Return the cluster's id, controller and brokers. Raises NetworkError or RequestTimeoutError."""
        return self._run(self._admin.describe_cluster())

    def describe_config(
        self, topic: str | None = None, *, broker: int | None = None, group: str | None = None
    ) -> dict[str, ConfigValue]:
        """Return the settings of exactly one topic, broker or group, as a dict from name to value and source.

        Raises:
            KafkaError: there is no such topic or broker.
            UnsupportedVersionError: the broker is older than 0.11.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        return self._run(self._admin.describe_config(topic, broker=broker, group=group))

    def create_partitions(self, topic: str, count: int) -> None:
        """Add partitions to a topic, so that it has `count` partitions in all.

        Existing records stay in their partitions; keys of new records may map to other partitions than
        before.

        Raises:
            KafkaError: there is no such topic (3), or it has at least `count` partitions already (37).
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
        """Change settings of a topic, a group, one broker, or all brokers. Either all changes apply or none.

        `client_metrics` is the name of a subscription to client metrics (KIP-714), whose settings are
        `metrics`, `interval.ms` and `match`. The subscription exists as long as it has settings.

        `group` is a share, consumer or streams group, which need not exist yet; settings of share groups are
        `share.auto.offset.reset`, `share.record.lock.duration.ms` and others (Kafka 4.2).

        `set` gives values, `delete` restores defaults, `append` and `subtract` add and remove items of lists
        such as `cleanup.policy`.

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
        """Delete each partition's records below an offset; return the new first offset of each partition.

        The offset `HIGH_WATERMARK` (-1) deletes all records of the partition.

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
        """Return one offset per partition: the earliest, the latest, or the first at or after a time.

        A time is a datetime, or milliseconds since 1970.

        Raises:
            KafkaError: a partition does not exist, or the client is not authorized for its topic.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        return self._run(self._admin.list_offsets(questions, isolation=isolation))

    def list_groups(self, *, states: Collection[str] = ()) -> list[GroupListing]:
        """Return all groups of the cluster, or those in the given states (``Stable``, ``Empty``), sorted.

        Raises:
            KafkaError: a broker refuses.
            NetworkError, RequestTimeoutError: a broker does not answer.
        """
        return self._run(self._admin.list_groups(states=states))

    def describe_groups(self, group_ids: Iterable[str]) -> list[GroupDescription]:
        """Return descriptions of groups, in the order given.

        Raises:
            KafkaError: a group does not exist (69), or the client is not authorized to describe it.
            NetworkError, RequestTimeoutError: no coordinator answers in time.
        """
        return self._run(self._admin.describe_groups(group_ids))

    def delete_groups(self, group_ids: Iterable[str]) -> None:
        """Delete groups that have no members, with their committed offsets.

        Raises:
            KafkaError: a group could not be deleted (68: it has members; 69: it does not exist). The error is
                about the first such group.
            UnsupportedVersionError: the broker is older than 1.1.
            NetworkError, RequestTimeoutError: no coordinator answers in time.
        """
        self._run(self._admin.delete_groups(group_ids))

    def list_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition | tuple[str, int]] | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the committed offsets of a group, by default of all partitions.

        Brokers before 0.10.2 cannot list a group's offsets: the client asks them for every partition of the
        cluster.

        Raises:
            KafkaError: the client is not authorized for the group.
            NetworkError, RequestTimeoutError: no coordinator answers in time.
        """
        return self._run(self._admin.list_group_offsets(group_id, partitions))

    def alter_group_offsets(self, group_id: str, offsets: Committable) -> None:
        """Set the committed offsets of a group without members. A group that does not exist is created.

        Raises:
            KafkaError: the group has members, or a topic does not exist.
            ConfigError: an offset is negative.
            NetworkError, RequestTimeoutError: no coordinator answers in time.
        """
        self._run(self._admin.alter_group_offsets(group_id, offsets))

    def delete_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition | tuple[str, int]]
    ) -> None:
        """Delete a group's committed offsets for some partitions.

        No member may be subscribed to their topics.

        Raises:
            KafkaError: the group does not exist (69), or a member is subscribed to a topic (86).
            UnsupportedVersionError: the broker is older than 2.4.
            NetworkError, RequestTimeoutError: no coordinator answers in time.
        """
        self._run(self._admin.delete_group_offsets(group_id, partitions))

    # -- streams groups

    def list_streams_groups(self, *, states: Collection[str] = ()) -> list[GroupListing]:
        """Return all streams groups of the cluster (KIP-1071), sorted by name, or those in the given states.

        States are ``Stable``, ``Empty``, ``NotReady``, ``Assigning`` and ``Reconciling``.

        Raises:
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        return self._run(self._admin.list_streams_groups(states=states))

    def describe_streams_groups(self, group_ids: Iterable[str]) -> list[StreamsGroupDescription]:
        """Return descriptions of streams groups, with topologies and tasks, in the order given.

        Raises:
            KafkaError: a group does not exist or is no streams group (69), or the client is not authorized to
                describe it.
            UnsupportedVersionError: the cluster has no streams groups.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        return self._run(self._admin.describe_streams_groups(group_ids))

    # -- share groups

    def list_share_groups(self, *, states: Collection[str] = ()) -> list[GroupListing]:
        """Return all share groups, sorted by name, or those in the given states (``Stable``, ``Empty``).

        Raises:
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        return self._run(self._admin.list_share_groups(states=states))

    def describe_share_groups(self, group_ids: Iterable[str]) -> list[ShareGroupDescription]:
        """Return descriptions of share groups, in the order given.

        Raises:
            KafkaError: a group does not exist or is no share group (69), or the client is not authorized to
                describe it.
            UnsupportedVersionError: the cluster has no share groups.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        return self._run(self._admin.describe_share_groups(group_ids))

    def list_share_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition | tuple[str, int]] | None = None
    ) -> dict[TopicPartition, ShareGroupOffset]:
        """Return a share group's start offset and lag in each partition, or in the given ones.

        Raises:
            KafkaError: the client is not authorized for the group or a topic.
            UnsupportedVersionError: the cluster has no share groups.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        return self._run(self._admin.list_share_group_offsets(group_id, partitions))

    def alter_share_group_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, int] | Mapping[tuple[str, int], int]
    ) -> None:
        """Set the start offsets of a share group without members. A group that does not exist is created.

        The brokers drop the locks and delivery counts of these partitions.

        Raises:
            KafkaError: the group has members (68), or there is no such topic (3).
            UnsupportedVersionError: the cluster has no share groups.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        self._run(self._admin.alter_share_group_offsets(group_id, offsets))

    def delete_share_group_offsets(self, group_id: str, topics: Collection[str]) -> None:
        """Remove a share group's state for topics, so that it later reads them as new topics.

        The group must have no members.

        Raises:
            KafkaError: the group has members (68), does not exist (69), or has no offsets in a topic (3).
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
        """Return all transactional ids of the cluster, sorted, or those that match every given filter.

        `states` are names as in `TransactionDescription.state`; `longer_than_ms` selects transactions that
        have been running for longer; `pattern` is a regular expression that must match the whole id.

        Raises:
            KafkaError: a broker refuses; 128: `pattern` is not a regular expression.
            UnsupportedVersionError: a broker is older than Kafka 3.0; with `longer_than_ms`, than 3.8; with
                `pattern`, than 4.1.
            ConfigError: a state does not exist.
            NetworkError, RequestTimeoutError: a broker does not answer.
        """
        return self._run(
            self._admin.list_transactions(
                states=states, producer_ids=producer_ids, longer_than_ms=longer_than_ms, pattern=pattern
            )
        )

    def describe_transactions(self, transactional_ids: Iterable[str]) -> list[TransactionDescription]:
        """Return descriptions of transactional ids, in the order given.

        Raises:
            KafkaError: an id is not known (105), or the client is not authorized to describe it (53).
            UnsupportedVersionError: the coordinator is older than Kafka 3.0.
            NetworkError, RequestTimeoutError: no coordinator answers in time.
        """
        return self._run(self._admin.describe_transactions(transactional_ids))

    def end_transaction(self, coordinates: TransactionCoordinates, *, commit: bool) -> None:
        """Commit or abort a prepared transaction from any process.

        `coordinates` are what `Producer.prepare_transaction` has returned; that producer need not run any
        more. All records of the transaction must have been acknowledged. The call may be repeated until the
        transactional id is used again, since the coordinator keeps the outcome. No producer is fenced.

        Raises:
            TransactionAbortableError: a commit came too late: the coordinator has aborted the transaction,
                mostly because its timeout had passed. The application must do the transaction's work again.
            ProducerFencedError: a newer producer uses the id, or the id has expired. With
                ``transaction.version`` below 2 also: the transaction's timeout has passed. The client does
                not know whether the transaction was committed before.
            TransactionFatalError: the transaction to abort is committed already, or the coordinator refuses
                the request.
            NetworkError, RequestTimeoutError: no coordinator answers in time. Repeat the call.
        """
        self._run(self._admin.end_transaction(coordinates, commit=commit))

    def fence_producer(self, transactional_id: str) -> TransactionCoordinates:
        """Abort the open transaction of a transactional id, and fence the producer that uses the id now.

        The effect on the transactional id is that of a new producer that calls InitProducerId. Returns the
        producer id and epoch that the coordinator has assigned.

        Raises:
            KafkaError: the client is not authorized for the id (53), or the coordinator refuses the request.
            RequestTimeoutError: the transaction is not over within ``default.api.timeout.ms``.
            NetworkError: no coordinator answers.
        """
        return self._run(self._admin.fence_producer(transactional_id))

    def describe_producers(
        self, partitions: Iterable[TopicPartition | tuple[str, int]], *, broker: int | None = None
    ) -> dict[TopicPartition, list[PartitionProducer]]:
        """Return the active producers of each partition, from the partition leaders.

        If `broker` is given, the client asks the replicas at that broker, and not the leaders.

        Raises:
            ConfigError: the cluster has no such broker.
            KafkaError: a partition does not exist (3), is not at that broker (6), or the client is not
                authorized for its topic (29).
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
        """Return transactions that are open in one of these partitions, and that no coordinator will end.

        Consumers with ``read_committed`` wait for such a transaction for ever. A transaction hangs if its
        last record is older than `older_than_ms`, and either its producer has no transactional id, or the
        coordinator of that id does not list the partition. Raises as `describe_producers` and
        `list_transactions`.
        """
        return self._run(self._admin.find_hanging_transactions(partitions, older_than_ms=older_than_ms))

    def abort_hanging_transaction(
        self, partition: TopicPartition | tuple[str, int], start_offset: int
    ) -> PartitionProducer:
        """Write an abort marker for the transaction that is open in a partition from `start_offset` on.

        Use it for hanging transactions only (`find_hanging_transactions`). If a coordinator still has the
        transaction, start a new producer with its transactional id instead: that ends the transaction in all
        of its partitions. Returns the producer of the transaction.

        Raises:
            ConfigError: no transaction begins at `start_offset`.
            KafkaError: the producer or coordinator has a newer epoch (47, 52), or the client is not
                authorized (31).
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
        """Write an abort marker for a producer's open transaction in one partition.

        Do not pass a `coordinator_epoch` above the coordinator's real epoch: the partition would refuse the
        coordinator's later markers. If `coordinator_epoch` is -1 (not known), the marker has 0. Raises as
        `abort_hanging_transaction`.
        """
        self._run(self._admin.write_abort_marker(partition, producer_id, producer_epoch, coordinator_epoch))

    def close(self) -> None:
        """Close the connections to the brokers."""
        if self._process is Blocking._this_process:
            self._run(self._admin.close())
