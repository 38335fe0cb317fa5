"""The admin client for asyncio. Its calls are carried out by one object per kind of resource.

These objects share the client's connections. There is one each for topics, logs, settings, groups, security
and transactions. This module checks the arguments of each call.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Unpack

from penstock.client import arguments
from penstock.client.admin.configs import ConfigAdministration, ConfigValue, changes_of, resource_of
from penstock.client.admin.groups import GroupAdministration, GroupDescription, GroupListing
from penstock.client.admin.logs import LogAdministration, LogDirectory
from penstock.client.admin.security import MECHANISMS, QuotaEntity, SecurityAdministration, password_text
from penstock.client.admin.share_groups import (
    ShareGroupAdministration,
    ShareGroupDescription,
    ShareGroupOffset,
)
from penstock.client.admin.streams_groups import StreamsGroupAdministration, StreamsGroupDescription
from penstock.client.admin.topics import (
    BROKER_DEFAULT,
    NewTopic,
    TopicAdministration,
    TopicDescription,
    checked_topics,
)
from penstock.client.admin.transactions import (
    HANGING_AGE_MS,
    HangingTransaction,
    PartitionProducer,
    TransactionAdministration,
    TransactionDescription,
    TransactionListing,
)
from penstock.client.arguments import (
    broker_id,
    checked,
    flag,
    instance_of,
    list_of,
    mapping,
    milliseconds,
    one_of,
    optional,
    size,
    text,
    topic_name,
    topic_partition,
    topic_partitions,
    whole,
)
from penstock.client.cluster.client import AsyncClient
from penstock.client.cluster.instance_id import HasInstanceId
from penstock.client.cluster.metadata import BrokerNode
from penstock.client.config import ClientConfig
from penstock.client.fetch.cursors import ISOLATION_LEVELS
from penstock.client.fetch.offsets import Answers, fetch_offsets
from penstock.client.group.offsets import Committable, OffsetAndMetadata
from penstock.client.transactions.steps import TransactionCoordinates
from penstock.common.hints import with_hints
from penstock.errors import ConfigError, NetworkError
from penstock.model import TopicPartition
from penstock.security.acls import EVERY_ACL, Acl, AclFilter

if TYPE_CHECKING:
    from datetime import datetime

    from penstock.client.options import AdminOptions
    from penstock.client.statistics import Statistics
    from penstock.security.secrets import Secret

_MECHANISMS = list_of(one_of(*MECHANISMS), "['SCRAM-SHA-256']")
_QUOTAS = mapping("{'producer_byte_rate': 1e6}")


@with_hints("ClusterDescription")
class ClusterDescription(NamedTuple):
    """A cluster's id, controller and brokers. `controller` is -1 if the cluster names none."""

    cluster_id: str | None
    controller: int
    nodes: Sequence[BrokerNode]


@with_hints("AsyncAdmin")
class AsyncAdmin(HasInstanceId):
    """Manages topics, settings, groups, users, ACLs and transactions of a cluster.

    >>> async with AsyncAdmin(bootstrap_servers="localhost:9092") as admin:
    ...     await admin.create_topic("orders", partitions=6)

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
        self.config = ClientConfig.of(config, options, bootstrap_servers=bootstrap_servers)
        self._client = AsyncClient(self.config)
        self._topics = TopicAdministration(self._client)
        self._logs = LogAdministration(self._client)
        self._configs = ConfigAdministration(self._client)
        self._groups = GroupAdministration(self._client)
        self._share_groups = ShareGroupAdministration(self._client, self._groups)
        self._streams_groups = StreamsGroupAdministration(self._client, self._groups)
        self._security = SecurityAdministration(self._client)
        self._transactions = TransactionAdministration(self._client)
        self._is_closed = False
        self._client.begin_reports(self.stats)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.config.described}{', closed' if self._is_closed else ''}>"

    async def start(self) -> AsyncAdmin:
        """Connect to the cluster. This call is optional: every other call connects if necessary.

        Raises:
            NetworkError: no bootstrap server answers.
        """
        if self._is_closed:
            raise NetworkError("this admin client is closed")
        await self._client.bootstrap()
        return self

    async def __aenter__(self) -> AsyncAdmin:
        return await self.start()

    async def __aexit__(self, exc_type: object, exc: object, traceback: object) -> None:
        await self.close()

    def stats(self) -> Statistics:
        """Return a snapshot of this client's counters and connections. Any thread may call this method.

        To get snapshots at intervals, set ``statistics.interval.ms`` and ``stats_cb``.
        """
        from penstock.client.cluster.client_statistics import client_statistics

        return client_statistics(self._client, "admin")

    async def close(self) -> None:
        """Close the connections to the brokers."""
        self._is_closed = True
        await self._client.close()

    # -- topics

    async def create_topic(
        self,
        name: str,
        partitions: int = 1,
        replication_factor: int = BROKER_DEFAULT,
        config: Mapping[str, str] | None = None,
    ) -> None:
        """Create one topic, and wait until every partition has a leader. Raises as `create_topics`."""
        await self.create_topics([NewTopic(name, partitions, replication_factor, config or {})])

    async def create_topics(self, topics: Iterable[NewTopic | str]) -> None:
        """Create topics, and wait until every partition has a leader.

        Raises:
            KafkaError: a topic could not be created (36: it exists already). The error is about the first
                such topic.
            UnsupportedVersionError: the broker is older than 0.10.1.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        wanted = checked_topics(topics)
        await self.start()
        await self._topics.create(wanted)

    async def delete_topics(self, names: Collection[str]) -> None:
        """Delete topics and all their records.

        Raises:
            KafkaError: a topic could not be deleted (3: it does not exist). The error is about the first such
                topic.
            UnsupportedVersionError: the broker is older than 0.10.1.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        wanted = arguments.names(names, "delete_topics()")
        await self.start()
        await self._topics.delete(wanted)

    @checked(include_internal=flag)
    async def list_topics(self, *, include_internal: bool = False) -> list[str]:
        """Return the names of all topics, sorted. Raises NetworkError or RequestTimeoutError."""
        await self.start()
        return await self._topics.names(include_internal=include_internal)

    async def describe_topics(self, names: Collection[str]) -> list[TopicDescription]:
        """Return descriptions of topics, in the order given.

        Raises:
            KafkaError: a topic does not exist, or the client is not authorized to describe it.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        wanted = arguments.names(names, "describe_topics()")
        await self.start()
        return await self._topics.describe(wanted)

    async def create_partitions(self, topic: str, count: int) -> None:
        """Add partitions to a topic, so that it has `count` partitions in all.

        Existing records stay in their partitions; keys of new records may map to other partitions than
        before.

        Raises:
            KafkaError: there is no such topic (3), or it has at least `count` partitions already (37).
            UnsupportedVersionError: the broker is older than 1.0.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        topic, count = topic_name(topic), whole(count, "the number of partitions")
        await self.start()
        await self._topics.grow(topic, count)

    async def delete_records(
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
        wanted = arguments.by_partition(offsets, "delete_records()")
        for tp, offset in wanted.items():
            wanted[tp] = whole(offset, f"the offset for {tp}")
        await self.start()
        return await self._logs.delete_records(wanted)

    @checked(isolation=one_of(*ISOLATION_LEVELS))
    async def list_offsets(
        self, questions: Mapping[TopicPartition, int | datetime], *, isolation: str = "read_uncommitted"
    ) -> Answers:
        """Return one offset per partition: the earliest, the latest, or the first at or after a time.

        A time is a datetime, or milliseconds since 1970.

        Raises:
            KafkaError: a partition does not exist, or the client is not authorized for its topic.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        wanted = arguments.by_partition(questions, "list_offsets()")
        for tp, question in wanted.items():
            wanted[tp] = arguments.time_ms(question, f"the question about {tp}")
        await self.start()
        return await fetch_offsets(self._client, wanted, isolation=isolation)

    # -- cluster and settings

    async def describe_cluster(self) -> ClusterDescription:
        """Return the cluster's id, controller and brokers. Raises NetworkError or RequestTimeoutError."""
        await self.start()
        await self._client.retrying("describing the cluster", self._client.refresh)
        cluster = self._client.cluster
        nodes = [cluster.nodes[node_id] for node_id in sorted(cluster.nodes)]
        return ClusterDescription(cluster.cluster_id, cluster.controller_id, nodes)

    @checked(broker=optional(broker_id))
    async def describe_log_dirs(self, broker: int | None = None) -> list[LogDirectory]:
        """Return the data directories of one broker, or of all, with the size of every partition.

        Raises:
            KafkaError: a directory cannot be read (56).
            UnsupportedVersionError: the broker is older than 1.0.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        await self.start()
        return await self._logs.directories(broker)

    @checked(broker=optional(broker_id), group=optional(text))
    async def describe_config(
        self, topic: str | None = None, *, broker: int | None = None, group: str | None = None
    ) -> dict[str, ConfigValue]:
        """Return the settings of exactly one topic, broker or group, as a dict from name to value and source.

        Raises:
            KafkaError: there is no such topic or broker.
            UnsupportedVersionError: the broker is older than 0.11.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        if (topic is not None) + (broker is not None) + (group is not None) != 1:
            raise ConfigError("describe_config() takes the name of a topic, or broker=, or group=, not both")
        if topic is not None:
            topic_name(topic)
        await self.start()
        if broker is not None:
            await self._client.check_node(broker)
        return await self._configs.describe(resource_of(topic, broker, group=group))

    @checked(
        all_brokers=flag,
        validate_only=flag,
        broker=optional(broker_id),
        client_metrics=optional(text),
        group=optional(text),
    )
    async def alter_config(
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
        named = sum(each is not None for each in (topic, broker, client_metrics, group))
        if named + all_brokers != 1:
            raise ConfigError(
                "alter_config() takes the name of a topic, or broker=, all_brokers=True or client_metrics=, "
                "or group="
            )
        if topic is not None:
            topic_name(topic)
        for argument, given in (("set", set), ("append", append), ("subtract", subtract)):
            if given is not None and not isinstance(given, Mapping):
                raise ConfigError(f"{argument} is {given!r}: a mapping of settings is needed")
        delete = arguments.names(delete, "alter_config(delete=...)", "setting")
        changes = changes_of(set or {}, delete, append or {}, subtract or {})
        await self.start()
        if broker is not None:
            await self._client.check_node(broker)
        resource = resource_of(topic, broker, client_metrics, group)
        await self._configs.alter(resource, changes, validate_only=validate_only)

    # -- groups

    @checked(states=list_of(text, "['Stable']"))
    async def list_groups(self, *, states: Collection[str] = ()) -> list[GroupListing]:
        """Return all groups of the cluster, or those in the given states (``Stable``, ``Empty``), sorted.

        Raises:
            KafkaError: a broker refuses.
            NetworkError, RequestTimeoutError: a broker does not answer.
        """
        await self.start()
        return await self._groups.listings(states)

    async def describe_groups(self, group_ids: Iterable[str]) -> list[GroupDescription]:
        """Return descriptions of groups, in the order given.

        Raises:
            KafkaError: a group does not exist (69), or the client is not authorized to describe it.
            NetworkError, RequestTimeoutError: no coordinator answers in time.
        """
        wanted = arguments.names(group_ids, "describe_groups()", "group")
        return [await self._groups.describe(group_id) for group_id in wanted]

    async def delete_groups(self, group_ids: Iterable[str]) -> None:
        """Delete groups that have no members, with their committed offsets.

        Raises:
            KafkaError: a group could not be deleted (68: it has members; 69: it does not exist). The error is
                about the first such group.
            UnsupportedVersionError: the broker is older than 1.1.
            NetworkError, RequestTimeoutError: no coordinator answers in time.
        """
        for group_id in arguments.names(group_ids, "delete_groups()", "group"):
            await self._groups.delete(group_id)

    @checked(group_id=text)
    async def list_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition | tuple[str, int]] | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the committed offsets of a group, by default of all partitions.

        Brokers before 0.10.2 cannot list a group's offsets: the client asks them for every partition of the
        cluster.

        Raises:
            KafkaError: the client is not authorized for the group.
            NetworkError, RequestTimeoutError: no coordinator answers in time.
        """
        wanted = None if partitions is None else topic_partitions(partitions, "list_group_offsets()")
        return await self._groups.offsets(group_id, wanted)

    @checked(group_id=text)
    async def alter_group_offsets(self, group_id: str, offsets: Committable) -> None:
        """Set the committed offsets of a group without members. A group that does not exist is created.

        Raises:
            KafkaError: the group has members, or a topic does not exist.
            ConfigError: an offset is negative.
            NetworkError, RequestTimeoutError: no coordinator answers in time.
        """
        await self._groups.alter_offsets(group_id, offsets)

    @checked(group_id=text)
    async def delete_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition | tuple[str, int]]
    ) -> None:
        """Delete a group's committed offsets for some partitions.

        No member may be subscribed to their topics.

        Raises:
            KafkaError: the group does not exist (69), or a member is subscribed to a topic (86).
            UnsupportedVersionError: the broker is older than 2.4.
            NetworkError, RequestTimeoutError: no coordinator answers in time.
        """
        wanted = topic_partitions(partitions, "delete_group_offsets()")
        await self._groups.delete_offsets(group_id, wanted)

    # -- streams groups

    @checked(states=list_of(text, "['Stable']"))
    async def list_streams_groups(self, *, states: Collection[str] = ()) -> list[GroupListing]:
        """Return all streams groups of the cluster (KIP-1071), sorted by name, or those in the given states.

        States are ``Stable``, ``Empty``, ``NotReady``, ``Assigning`` and ``Reconciling``.

        Raises:
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        return await self._streams_groups.listings(states)

    async def describe_streams_groups(self, group_ids: Iterable[str]) -> list[StreamsGroupDescription]:
        """Return descriptions of streams groups, with topologies and tasks, in the order given.

        Raises:
            KafkaError: a group does not exist or is no streams group (69), or the client is not authorized to
                describe it.
            UnsupportedVersionError: the cluster has no streams groups.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        wanted = arguments.names(group_ids, "describe_streams_groups()", "group")
        return [await self._streams_groups.describe(group_id) for group_id in wanted]

    # -- share groups

    @checked(states=list_of(text, "['Stable']"))
    async def list_share_groups(self, *, states: Collection[str] = ()) -> list[GroupListing]:
        """Return all share groups, sorted by name, or those in the given states (``Stable``, ``Empty``).

        Raises:
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        return await self._share_groups.listings(states)

    async def describe_share_groups(self, group_ids: Iterable[str]) -> list[ShareGroupDescription]:
        """Return descriptions of share groups, in the order given.

        Raises:
            KafkaError: a group does not exist or is no share group (69), or the client is not authorized to
                describe it.
            UnsupportedVersionError: the cluster has no share groups.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        wanted = arguments.names(group_ids, "describe_share_groups()", "group")
        return [await self._share_groups.describe(group_id) for group_id in wanted]

    @checked(group_id=text)
    async def list_share_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition | tuple[str, int]] | None = None
    ) -> dict[TopicPartition, ShareGroupOffset]:
        """Return a share group's start offset and lag in each partition, or in the given ones.

        Raises:
            KafkaError: the client is not authorized for the group or a topic.
            UnsupportedVersionError: the cluster has no share groups.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        wanted = None if partitions is None else topic_partitions(partitions, "list_share_group_offsets()")
        return await self._share_groups.offsets(group_id, wanted)

    @checked(group_id=text)
    async def alter_share_group_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, int] | Mapping[tuple[str, int], int]
    ) -> None:
        """Set the start offsets of a share group without members. A group that does not exist is created.

        The brokers drop the locks and delivery counts of these partitions.

        Raises:
            KafkaError: the group has members (68), or there is no such topic (3).
            UnsupportedVersionError: the cluster has no share groups.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        wanted = arguments.by_partition(offsets, "alter_share_group_offsets()")
        for tp, offset in wanted.items():
            wanted[tp] = whole(offset, f"the offset for {tp}")
            if wanted[tp] < 0:
                raise ConfigError(f"the offset for {tp} is {offset}: offsets begin at 0")
        await self._share_groups.alter_offsets(group_id, wanted)

    @checked(group_id=text)
    async def delete_share_group_offsets(self, group_id: str, topics: Collection[str]) -> None:
        """Remove a share group's state for topics, so that it later reads them as new topics.

        The group must have no members.

        Raises:
            KafkaError: the group has members (68), does not exist (69), or has no offsets in a topic (3).
            UnsupportedVersionError: the cluster has no share groups.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        wanted = arguments.names(topics, "delete_share_group_offsets()")
        await self._share_groups.delete_offsets(group_id, wanted)

    # -- access, users and quotas

    @checked(acls=list_of(instance_of(Acl), "[Acl(...)]"))
    async def create_acls(self, acls: Iterable[Acl]) -> None:
        """Add access control entries. An entry that exists already is left as it is."""
        await self.start()
        await self._security.create_acls(acls)

    @checked(wanted=instance_of(AclFilter))
    async def list_acls(self, wanted: AclFilter = EVERY_ACL) -> list[Acl]:
        """Return the access control entries that match a filter. Without a filter, return all entries."""
        await self.start()
        return await self._security.acls(wanted)

    @checked(filters=list_of(instance_of(AclFilter), "[AclFilter(...)]"))
    async def delete_acls(self, filters: Sequence[AclFilter]) -> list[Acl]:
        """Remove the access control entries that match any of the filters, and return them."""
        await self.start()
        return await self._security.delete_acls(filters)

    @checked(names=list_of(text, "['ada']"))
    async def list_users(self, names: Sequence[str] = ()) -> dict[str, dict[str, int]]:
        """Return users that have SCRAM credentials, by default all.

        The result is a dict from user to a dict from SCRAM mechanism to iteration count.
        """
        await self.start()
        return await self._security.users(names)

    @checked(user=text, password=password_text, mechanisms=_MECHANISMS, iterations=size)
    async def set_password(
        self,
        user: str,
        password: str | Secret,
        mechanisms: Sequence[str] = tuple(MECHANISMS),
        iterations: int = 4096,
    ) -> None:
        """Set a user's SCRAM password for these mechanisms.

        The client sends salted hashes, never the password.
        """
        await self.start()
        await self._security.set_password(user, password, mechanisms, iterations)

    @checked(user=text, mechanisms=optional(_MECHANISMS))
    async def delete_user(self, user: str, mechanisms: Sequence[str] | None = None) -> None:
        """Remove a user's SCRAM credentials for these mechanisms, by default for all mechanisms."""
        await self.start()
        await self._security.delete_user(user, mechanisms)

    @checked(user=optional(text), quotas=_QUOTAS)
    async def set_user_quotas(self, user: str | None, quotas: Mapping[str, float | None]) -> None:
        """Set quotas of a user; if `user` is None, the default quotas of users without their own.

        The value None removes a quota.
        """
        await self.set_quotas({"user": user}, quotas)

    @checked(entity=mapping("{'user': 'ada'}"), quotas=_QUOTAS)
    async def set_quotas(self, entity: Mapping[str, str | None], quotas: Mapping[str, float | None]) -> None:
        """Set quotas of an entity (KIP-546). The value None removes a quota.

        `entity` maps entity types (``user``, ``client-id``, ``ip``) to names. The name None stands for the
        default entity of that type, whose quotas apply to every name without quotas of its own.
        """
        await self.start()
        await self._security.set_quotas(entity, quotas)

    async def list_quotas(self) -> dict[QuotaEntity, dict[str, float]]:
        """Return all quotas that are set: a dict from entity to a dict from quota name to value.

        The entities are those of `set_quotas`.
        """
        await self.start()
        return await self._security.quotas()

    # -- transactions

    @checked(
        states=list_of(text, "['Ongoing']"),
        producer_ids=list_of(whole, "[7]"),
        longer_than_ms=optional(milliseconds),
        pattern=optional(text),
    )
    async def list_transactions(
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
        return await self._transactions.listings(
            states=states, producer_ids=producer_ids, longer_than_ms=longer_than_ms, pattern=pattern
        )

    async def describe_transactions(self, transactional_ids: Iterable[str]) -> list[TransactionDescription]:
        """Return descriptions of transactional ids, in the order given.

        Raises:
            KafkaError: an id is not known (105), or the client is not authorized to describe it (53).
            UnsupportedVersionError: the coordinator is older than Kafka 3.0.
            NetworkError, RequestTimeoutError: no coordinator answers in time.
        """
        wanted = arguments.names(transactional_ids, "describe_transactions()", "transactional id")
        return [await self._transactions.describe(each) for each in wanted]

    @checked(coordinates=instance_of(TransactionCoordinates), commit=flag)
    async def end_transaction(self, coordinates: TransactionCoordinates, *, commit: bool) -> None:
        """Commit or abort a prepared transaction from any process.

        `coordinates` are what `AsyncProducer.prepare_transaction` has returned; that producer need not run
        any more. All records of the transaction must have been acknowledged. The call may be repeated until
        the transactional id is used again, since the coordinator keeps the outcome. No producer is fenced.

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
        await self._transactions.end(TransactionCoordinates(*coordinates), commit=commit)

    @checked(transactional_id=text)
    async def fence_producer(self, transactional_id: str) -> TransactionCoordinates:
        """Abort the open transaction of a transactional id, and fence the producer that uses the id now.

        The effect on the transactional id is that of a new producer that calls InitProducerId. Returns the
        producer id and epoch that the coordinator has assigned.

        Raises:
            KafkaError: the client is not authorized for the id (53), or the coordinator refuses the request.
            RequestTimeoutError: the transaction is not over within ``default.api.timeout.ms``.
            NetworkError: no coordinator answers.
        """
        return await self._transactions.fence(transactional_id)

    @checked(broker=optional(broker_id))
    async def describe_producers(
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
        wanted = topic_partitions(partitions, "describe_producers()")
        if broker is not None:
            await self._client.check_node(broker)
        return await self._transactions.producers(wanted, broker)

    @checked(older_than_ms=milliseconds)
    async def find_hanging_transactions(
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
        wanted = topic_partitions(partitions, "find_hanging_transactions()")
        return await self._transactions.hanging(wanted, older_than_ms)

    @checked(start_offset=whole)
    async def abort_hanging_transaction(
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
        return await self._transactions.abort_hanging(topic_partition(partition), start_offset)

    @checked(producer_id=whole, producer_epoch=whole, coordinator_epoch=whole)
    async def write_abort_marker(
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
        await self._transactions.write_abort_marker(
            topic_partition(partition), producer_id, producer_epoch, coordinator_epoch
        )
