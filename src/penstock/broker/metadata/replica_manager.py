"""`ReplicaManager`: the topics and partitions of one broker, which follow the cluster's metadata.

Each metadata record is applied to the image, and then by this module, which creates partitions, sets their
settings and leaders, and deletes their data. Apache Kafka's class `ReplicaManager` does the same. The image
itself is `penstock.broker.metadata.image`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Protocol

from penstock.broker.config.broker_keys import BROKER_KEYS
from penstock.broker.config.values import TopicConfig
from penstock.broker.metadata.image import ALL_BROKERS, ClusterImage
from penstock.broker.partitions.internal_topics import INTERNAL_TOPICS, TRANSACTIONS_TOPIC
from penstock.broker.partitions.partition import Partition
from penstock.common.logs import logger_named
from penstock.errors import StorageError
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.field_values import BROKER_RESOURCE, TOPIC_RESOURCE
from penstock.protocol.messages.config_record import ConfigRecord
from penstock.protocol.messages.partition_change_record import PartitionChangeRecord
from penstock.protocol.messages.partition_record import PartitionRecord
from penstock.protocol.messages.remove_topic_record import RemoveTopicRecord
from penstock.protocol.messages.topic_record import TopicRecord
from penstock.protocol.uuid import ZERO_UUID

if TYPE_CHECKING:
    from penstock.broker.config.values import BrokerConfig
    from penstock.broker.metadata.image import PartitionImage
    from penstock.broker.partitions.log_store import LogStore
    from penstock.protocol.message import Message

logger = logger_named("penstock.broker")


class Topic:
    """One topic at this broker. `partitions` are in order of their indices.

    `since_ms` is the time at which the broker got the topic's metadata. It is used while no file of the topic
    shows the topic's age.
    """

    __slots__ = ("config", "id", "is_internal", "name", "partitions", "since_ms")

    def __init__(self, name: str, topic_id: bytes, config: TopicConfig, since_ms: int) -> None:
        self.name = name
        self.id = topic_id
        self.config = config
        self.since_ms = since_ms
        self.is_internal = name in INTERNAL_TOPICS
        self.partitions: list[Partition] = []

    def partition(self, index: int) -> Partition:
        """Return the partition with this number.

        Raises:
            KafkaError: UNKNOWN_TOPIC_OR_PARTITION (3).
        """
        if 0 <= index < len(self.partitions):
            return self.partitions[index]
        raise error_for(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"topic {self.name} has {len(self.partitions)} partitions, there is no number {index}",
        )


class Replicating(Protocol):
    """The interface that connects partitions with their replicas in a cluster of several brokers."""

    def added(self, partition: Partition) -> None:
        """Set the attribute `replication` of a new partition."""

    def follow(self, partition: Partition, image: PartitionImage) -> None:
        """Apply new metadata of a partition to its replication, such as another leader."""


class ReplicaManager:
    """Keeps the topics and partitions of one broker in accordance with the cluster's metadata."""

    def __init__(
        self,
        image: ClusterImage,
        config: BrokerConfig,
        store: LogStore,
        replicating: Replicating | None = None,
    ) -> None:
        """Make a manager without topics.

        `config` has the broker's effective settings, including those that clients have set.
        """
        self._replicating = replicating
        self._image = image
        self._config = config
        self._store = store
        self.topics: dict[str, Topic] = {}
        self.topics_by_id: dict[bytes, Topic] = {}
        self.opened: dict[Partition, None] = {}
        """The partitions whose logs are open: only these need maintenance."""
        self._plain_config: TopicConfig | None = None
        self._has_several_directories = len(store.log_dirs()) > 1

    @property
    def plain_config(self) -> TopicConfig:
        """The effective settings of topics without settings of their own, which share this one object."""
        if self._plain_config is None:
            self._plain_config = TopicConfig(self._config)
        return self._plain_config

    def partitions(self) -> Iterable[Partition]:
        """Yield all partitions of all topics."""
        for topic in self.topics.values():
            yield from topic.partitions

    def apply(self, record: Message) -> None:
        """Apply a record to the image, then to the topics. `delete` later deletes removed topics' data."""
        self._image.apply(record)
        if isinstance(record, TopicRecord):
            if record.name == TRANSACTIONS_TOPIC:
                self._store.holds_transactions = True
            topic = Topic(record.name, record.topic_id, self.plain_config, self._store.now_ms())
            self.topics[topic.name] = topic
            self.topics_by_id[topic.id] = topic
            overrides = self._image.topics[topic.name].overrides
            if overrides:
                self._configure(topic, overrides)
        elif isinstance(record, (PartitionRecord, PartitionChangeRecord)):
            self._apply_partition(record)
        elif isinstance(record, ConfigRecord):
            self._apply_config(record)
        elif isinstance(record, RemoveTopicRecord):
            removed = self.topics_by_id.pop(record.topic_id, None)
            if removed is not None:
                del self.topics[removed.name]

    def _apply_partition(self, record: PartitionRecord | PartitionChangeRecord) -> None:
        topic = self.topics_by_id.get(record.topic_id)
        if topic is None:
            return
        images = self._image.topics_by_id[topic.id].partitions
        if record.partition_id >= len(images):
            return
        image = images[record.partition_id]
        if record.directories and self._has_several_directories:
            self._store.assign(topic.name, image.index, record.directories[0])
        if record.partition_id == len(topic.partitions):
            added = Partition(topic.name, topic.id, image.index, topic.config, self._store, self.opened)
            topic.partitions.append(added)
            if self._replicating is not None:
                self._replicating.added(added)
        partition = topic.partitions[record.partition_id]
        if self._replicating is None:
            replicas = image.replicas
            partition.become(image.leader, image.leader_epoch, replicas.assigned, replicas.in_sync)
        else:
            self._replicating.follow(partition, image)

    def _apply_config(self, record: ConfigRecord) -> None:
        name = record.resource_name
        if record.resource_type == TOPIC_RESOURCE:
            topic = self.topics.get(name)
            if topic is not None and record.name in self._config.topic_keys:
                self._configure(topic, self._image.topics[name].overrides)
        elif record.resource_type == BROKER_RESOURCE and name in (ALL_BROKERS, str(self._store.node_id)):
            self._plain_config = None
            if record.name in BROKER_KEYS:
                for topic in self.topics.values():
                    self._configure(topic, topic.config.overrides)

    def _configure(self, topic: Topic, texts: Mapping[str, str]) -> None:
        # A directory written by Apache Kafka may name settings that mean nothing here.
        known = {name: text for name, text in texts.items() if name in self._config.topic_keys}
        topic.config = TopicConfig(self._config, known) if known else self.plain_config
        for partition in topic.partitions:
            partition.configure(topic.config)

    def delete(self, topic: Topic) -> None:
        """Close the partitions of a topic and delete their data.

        Raises:
            StorageError: data cannot be deleted; the next start deletes them.
        """
        for partition in topic.partitions:
            try:
                partition.close()
            except StorageError as error:
                logger.warning("%s; the partition is deleted nevertheless", error)
            self._store.delete_log(topic.name, partition.index, topic.id)

    def reconcile(self, removed_ids: set[bytes]) -> Iterator[tuple[str, bytes | None, int]]:
        """Compare the data found at the start with the image; yield the topics that are not in the image.

        Data of topics in `removed_ids` are deleted, since a crash has prevented their deletion. These topics
        are not yielded.

        Yields:
            Name, id (None if the data have none) and number of partitions of every topic without a record,
            whose data another broker has written.
        """
        unknown: dict[str, dict[int, bytes | None]] = {}
        for name, index in self._store.partitions():
            if name in self.topics and self._store.was_clean:
                continue
            topic_id = self._store.topic_id(name, index)
            if topic_id in removed_ids:
                self._store.delete_log(name, index, topic_id or ZERO_UUID)
            elif name not in self.topics:
                unknown.setdefault(name, {})[index] = topic_id
        return iter(
            [
                (name, next((one for one in ids.values() if one), None), max(ids) + 1)
                for name, ids in unknown.items()
            ]
        )
