"""One node's state of its cluster: metadata as they have arrived, and the partitions that it makes of them.

Takes the place of `Cluster` and `ReplicaManager` of a broker by itself. Changes go to the controller; what
comes of them is applied here when the controller sends it, in the order in which it was written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from penstock.broker.metadata.cluster import PRODUCER_ID_BLOCK, Cluster
from penstock.broker.metadata.planning import NewTopic, Planner
from penstock.broker.metadata.replica_manager import ReplicaManager, Topic
from penstock.broker.partitions.internal_topics import (
    OFFSETS_TOPIC,
    SHARE_STATE_TOPIC,
    TRANSACTIONS_TOPIC,
)
from penstock.broker.partitions.partition import NO_LEADER
from penstock.broker.replication.partition import Host, ReplicatedPartition
from penstock.common.logs import logger_named
from penstock.errors import KafkaError, PenstockError, StorageError
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.client_quota_record import ClientQuotaRecord
from penstock.protocol.messages.partition_change_record import PartitionChangeRecord
from penstock.protocol.messages.partition_record import PartitionRecord
from penstock.protocol.messages.producer_ids_record import ProducerIdsRecord
from penstock.protocol.messages.remove_topic_record import RemoveTopicRecord

if TYPE_CHECKING:
    from penstock.broker.config.values import BrokerConfig
    from penstock.broker.metadata.image import ClusterImage, PartitionImage
    from penstock.broker.metadata.planning import Placing
    from penstock.broker.partitions.log_store import LogStore
    from penstock.broker.partitions.partition import Partition
    from penstock.broker.requests.quotas import MutationTokens
    from penstock.protocol.message import Message

logger = logger_named("penstock.broker")

_FACTORS = {
    OFFSETS_TOPIC: "offsets.topic.replication.factor",
    TRANSACTIONS_TOPIC: "transaction.state.log.replication.factor",
    SHARE_STATE_TOPIC: "share.coordinator.state.topic.replication.factor",
}


class Authority(Protocol):
    """The controller as one node reaches it."""

    placing: Placing
    cluster_id: str
    size: int
    """How many brokers the cluster has: those that are not there yet will be."""
    mutation_tokens: MutationTokens
    """What clients with a quota may still create and delete."""

    @property
    def end_offset(self) -> int:
        """The offset after the last metadata record."""

    @property
    def epoch(self) -> int:
        """The epoch in which the controller leads the metadata log."""

    def producer_ids_end(self) -> int:
        """The first producer id that no node has reserved."""

    def catch_up(self) -> None:
        """Have the node take in all metadata that have been written, where the controller is in reach."""

    def commit(self, records: Sequence[Message], now_ms: int) -> None:
        """Have records written that were decided against all before them, and take them.

        Raises:
            StorageError: they could not be written, others came before them, or the controller cannot be
                reached.
        """


class MemberReplicas(ReplicaManager):
    """The topics of a cluster as one node keeps them. Topics are there with all partitions, kept here or
    not.
    """

    host: Host
    follows = False
    """Whether partitions follow their images. They do not while a start reads what has been: only the last
    state of a partition counts, and a leadership that has ended must not begin again for a moment."""

    def __init__(self, image: ClusterImage, config: BrokerConfig, store: LogStore) -> None:
        super().__init__(image, config, store)
        self.behind: dict[ReplicatedPartition, None] = {}
        """Partitions that could not follow their image: their logs cannot be opened, or not yet."""

    def _new_partition(self, topic: Topic, index: int) -> Partition:
        return ReplicatedPartition(
            topic.name, topic.id, index, topic.config, self._store, self.opened, self.host
        )

    def _follow(self, partition: Partition, image: PartitionImage) -> None:
        assert isinstance(partition, ReplicatedPartition)
        if self.follows:
            try:
                self._follow_now(partition, image)
            except PenstockError as error:
                # What the disk refuses must not keep other metadata from counting.
                partition.troubled(error)
                self.behind[partition] = None

    def _follow_now(self, partition: ReplicatedPartition, image: PartitionImage) -> None:
        before = partition.leader_epoch
        try:
            partition.follow(image)
        except PenstockError:
            # It neither leads nor follows until it can: another try begins where this one did.
            partition.leader, partition.leader_epoch = NO_LEADER, before
            raise
        if not partition.is_kept_here and self._store.has_log(
            partition.topic, partition.index, partition.topic_id
        ):
            partition.close()
            self._store.delete_log(partition.topic, partition.index, partition.topic_id)
        if partition in self.behind:
            del self.behind[partition]
            partition.well()

    def follow_again(self) -> list[ReplicatedPartition]:
        """Have partitions follow their images that could not; return those that do now."""
        done = []
        for partition in list(self.behind):
            topic = self._image.topics_by_id.get(partition.topic_id)
            if topic is None:
                del self.behind[partition]
                continue
            try:
                self._follow_now(partition, topic.partitions[partition.index])
            except KafkaError:
                break  # enough logs were opened in this second
            except StorageError as error:
                partition.troubled(error)
            else:
                done.append(partition)
        return done

    def begin_to_follow(self) -> None:
        """Have every partition follow its image, from now on."""
        self.follows = True
        for topic in self.topics.values():
            for partition, image in zip(
                topic.partitions, self._image.topics[topic.name].partitions, strict=True
            ):
                assert isinstance(partition, ReplicatedPartition)
                if image.leader == self.host.node_id:
                    partition.led_before = image.leader_epoch
                self._follow(partition, image)


class MemberCluster(Cluster):
    """The topics of a cluster, as one node has them."""

    def __init__(
        self,
        config: BrokerConfig,
        store: LogStore,
        now_ms: int,
        host: Host,
        authority: Authority,
        records: Sequence[Message],
    ) -> None:
        """`records` are the metadata that there are when the node starts.

        Raises:
            StorageError: a log cannot be opened.
        """
        self._host = host
        self._authority = authority
        self._records = records
        self._own_ids_end = 0
        self.changed: dict[ReplicatedPartition, None] = {}
        """Partitions whose metadata have changed, for who follows them to take out."""
        self.removed: list[Topic] = []
        """Topics that have been deleted, in the same way."""
        self.have_quotas_changed = False
        """Whether quotas of clients have changed, in the same way."""
        super().__init__(config, store, now_ms)
        self.placing = authority.placing
        self.cluster_id = authority.cluster_id
        self.mutation_tokens = authority.mutation_tokens

    def _new_replicas(self, store: LogStore) -> ReplicaManager:
        replicas = MemberReplicas(self.image, self.config, store)
        replicas.host = self._host
        return replicas

    def _begin(self, config: BrokerConfig, now_ms: int) -> None:
        self.apply(self._records)
        self._records = ()
        removed_ids: set[bytes] = set()
        for name, index in list(self._store.partitions()):
            topic, topic_id = self.topics.get(name), self._store.topic_id(name, index)
            is_known = topic is not None and topic.id == topic_id and index < len(topic.partitions)
            if not is_known and topic_id is not None:
                removed_ids.add(topic_id)  # deleted while the node was away
        self.replicas.reconcile(removed_ids)
        assert isinstance(self.replicas, MemberReplicas)
        self.replicas.begin_to_follow()

    def apply(self, records: Sequence[Message]) -> None:
        """Apply what the controller has written. What the disk refuses is logged, and tried again.

        Raises:
            StorageError: the metadata contradict themselves.
        """
        for record in records:
            if isinstance(record, RemoveTopicRecord):
                topic = self.topics_by_id.get(record.topic_id)
                self._apply(record)
                if topic is not None:
                    try:
                        self.replicas.delete(topic)
                    except StorageError as error:
                        logger.error(
                            "topic %s is deleted from the disk at the next start: %s", topic.name, error
                        )
                    self.removed.append(topic)
                    for each in topic.partitions:
                        self.changed[each] = None  # type: ignore[index]
                continue
            self._apply(record)
            if isinstance(record, ClientQuotaRecord):
                self.have_quotas_changed = True
            elif isinstance(record, (PartitionRecord, PartitionChangeRecord)):
                found = self.topics_by_id.get(record.topic_id)
                if found is not None and record.partition_id < len(found.partitions):
                    self.changed[found.partitions[record.partition_id]] = None  # type: ignore[index]

    def _apply(self, record: Message) -> None:
        self.image.apply(record)
        self.replicas.apply(record)

    def follow_again(self) -> None:
        """Have partitions follow their metadata that could not."""
        assert isinstance(self.replicas, MemberReplicas)
        for partition in self.replicas.follow_again():
            self.changed[partition] = None

    @property
    def is_behind(self) -> bool:
        """Whether partitions cannot follow their metadata yet."""
        assert isinstance(self.replicas, MemberReplicas)
        return bool(self.replicas.behind)

    def _commit(self, records: Sequence[Message], now_ms: int) -> None:
        self._authority.commit(records, now_ms)

    @property
    def metadata_end_offset(self) -> int:
        return self._authority.end_offset

    @property
    def metadata_epoch(self) -> int:
        return self._authority.epoch

    def _delete_data(self, topics: Sequence[Topic]) -> None:
        """Nothing: data go when the removal is applied, on every node."""

    # --- topics ------------------------------------------------------------------------------------------

    def catch_up(self) -> None:
        self._authority.catch_up()

    def plan_topic(
        self, name: str, partitions: int = -1, *, configs: Mapping[str, str | None] | None = None
    ) -> NewTopic:
        setting = _FACTORS.get(name)
        factor = -1
        if setting is not None:
            factor = max(1, min(self.config.integer(setting), self._authority.size))
        try:
            return Planner(self).new_topic(name, partitions, factor, configs=configs)
        except KafkaError as error:
            if error.code != ErrorCode.INVALID_REPLICATION_FACTOR:
                raise
            # No broker is alive, by the metadata: clients ask for their coordinators again.
            raise StorageError(f"{name} cannot be made now: {error}") from error

    def _partition_record(
        self, name: str, topic_id: bytes, index: int, replicas: Sequence[int] = ()
    ) -> PartitionRecord:
        in_sync = self._authority.placing.in_sync_of(replicas)
        return PartitionRecord(
            partition_id=index,
            topic_id=topic_id,
            replicas=list(replicas),
            isr=list(in_sync),
            leader=in_sync[0] if in_sync else -1,
            leader_epoch=0,
            partition_epoch=0,
            directories=[bytes(16)] * len(replicas),
        )

    def add_partitions(
        self,
        wanted: Mapping[str, int],
        now_ms: int,
        assignments: Mapping[str, Sequence[Sequence[int]]] | None = None,
    ) -> None:
        records: list[Message] = []
        for name in wanted:
            topic = self.topics[name]
            for index, replicas in enumerate((assignments or {})[name], len(topic.partitions)):
                records.append(self._partition_record(name, topic.id, index, replicas))
        if records:
            self._commit(records, now_ms)

    # --- producers ---------------------------------------------------------------------------------------

    def new_producer_id(self, now_ms: int) -> int:
        if self._next_producer_id >= self._own_ids_end:
            self.catch_up()
            first = max(self._authority.producer_ids_end(), self._next_producer_id)
            end = first + PRODUCER_ID_BLOCK
            self._commit([ProducerIdsRecord(broker_id=self.node_id, next_producer_id=end)], now_ms)
            self._next_producer_id, self._own_ids_end = first, end
        producer_id = self._next_producer_id
        self._next_producer_id += 1
        return producer_id

    def skip_producer_ids(self, seen: int) -> None:
        if seen >= self._authority.producer_ids_end():
            self._next_producer_id = (seen // PRODUCER_ID_BLOCK + 2) * PRODUCER_ID_BLOCK
            self._own_ids_end = 0
