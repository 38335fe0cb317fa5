"""What exists: topics with their ids, partitions and settings, and the numbers given to producers.

Every change is first decided, then written to the metadata log as records, then applied; a restart
applies the same records again. So there is one place that changes the state (`_apply`), and what a
restart brings back is what was there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from penstock.broker.config.broker_keys import BROKER_KEYS
from penstock.broker.config.resource_types import BROKER_RESOURCE, TOPIC_RESOURCE
from penstock.broker.config.values import BrokerConfig, TopicConfig
from penstock.broker.metadata.internal_topics import INTERNAL_TOPICS
from penstock.broker.metadata.metadata_log import DIRECTORIES_SINCE, ELIGIBLE_REPLICAS_SINCE, MetadataLog
from penstock.broker.metadata.metadata_log import TOPIC_NAME as METADATA_TOPIC
from penstock.broker.metadata.planning import NewTopic, Planner, folded
from penstock.broker.partitions.partition import Partition
from penstock.broker.requests.quotas import Entity, entity_of
from penstock.common.logs import logger_named
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.messages.client_quota_record import ClientQuotaRecord
from penstock.protocol.messages.config_record import ConfigRecord
from penstock.protocol.messages.feature_level_record import FeatureLevelRecord
from penstock.protocol.messages.partition_change_record import PartitionChangeRecord
from penstock.protocol.messages.partition_record import PartitionRecord
from penstock.protocol.messages.producer_ids_record import ProducerIdsRecord
from penstock.protocol.messages.remove_topic_record import RemoveTopicRecord
from penstock.protocol.messages.topic_record import TopicRecord
from penstock.protocol.uuid import ZERO_UUID, random_uuid

if TYPE_CHECKING:
    from penstock.broker.partitions.log_store import LogStore
    from penstock.protocol.message import Message

logger = logger_named("penstock.broker")

PRODUCER_ID_BLOCK = 1000
"""Producer ids are reserved in blocks, so that one record covers a thousand producers."""

TOPICS_TOLD = 10
"""Topics that one request creates or deletes and that have a line of their own in the broker's log."""

_SAME_LEADER = -2
"""In a change of a partition: it says nothing about the leader."""

METADATA_VERSION = 25
"""4.0-IV3: the feature level whose records we write."""

METADATA_FEATURE = "metadata.version"


class Topic:
    """One topic. `partitions` is in order of their numbers."""

    __slots__ = ("config", "id", "is_internal", "name", "partitions")

    def __init__(self, name: str, topic_id: bytes, config: TopicConfig) -> None:
        self.name = name
        self.id = topic_id
        self.config = config
        self.is_internal = name in INTERNAL_TOPICS
        self.partitions: list[Partition] = []

    def partition(self, index: int) -> Partition:
        """The partition with this number.

        Raises:
            KafkaError: UNKNOWN_TOPIC_OR_PARTITION (3).
        """
        if 0 <= index < len(self.partitions):
            return self.partitions[index]
        raise error_for(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"topic {self.name} has {len(self.partitions)} partitions, there is no number {index}",
        )


class Cluster:
    """The topics of one broker, in step with its metadata log."""

    def __init__(self, config: BrokerConfig, store: LogStore, now_ms: int) -> None:
        self.config = config
        self.node_id = store.node_id
        self.cluster_id = store.cluster_id
        self.topics: dict[str, Topic] = {}
        self.topics_by_id: dict[bytes, Topic] = {}
        self.kept: dict[tuple[int, str], dict[str, str]] = {}
        """What is set for groups and for subscriptions to metrics, by kind of resource and name."""
        self.quotas: dict[Entity, dict[str, float]] = {}
        """Quotas of clients, by whose they are and what they are called."""
        self.features: dict[str, int] = {}
        """Features that the cluster has settled on, each at a level."""
        self.opened: dict[Partition, None] = {}
        """The partitions whose logs are open: nothing else needs upkeep."""
        self._plain_config: TopicConfig | None = None
        self._leaderless: dict[Partition, None] = {}
        """While records are replayed: partitions that this broker does not lead by them."""
        self._store = store
        self.folded_names: dict[str, str] = {}
        """Topics by their names with dots and underscores taken for the same."""
        self._next_producer_id = self._producer_ids_end = 0
        # What clients have set is in the records; an earlier start of this process may have left its copy.
        config.dynamic.clear()
        config.dynamic_defaults.clear()
        self._metadata = MetadataLog(store.metadata_log())
        is_new = True
        removed_ids: set[bytes] = set()
        for record in self._metadata.replay():
            is_new = False
            self._apply(record)
            if isinstance(record, RemoveTopicRecord):
                removed_ids.add(record.topic_id)
        self._next_producer_id = self._producer_ids_end
        if is_new:
            level = FeatureLevelRecord(name=METADATA_FEATURE, feature_level=METADATA_VERSION)
            self._commit([level], now_ms)
        self._metadata.level = self.features.get(METADATA_FEATURE, METADATA_VERSION)
        self._lead_all(now_ms)
        self._match_store(removed_ids, now_ms)

    def _match_store(self, removed_ids: set[bytes], now_ms: int) -> None:
        """Bring what is stored in line with what the records say.

        Data of topics that were removed go: a crash came between the record and the deletion. Data of
        topics that no record names were written by another broker, and are taken in.
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
        records: list[Message] = []
        for name, ids in unknown.items():
            topic_id = next((one for one in ids.values() if one), None) or random_uuid()
            logger.warning("taking in topic %s, whose data were found in %s", name, self._store.describe())
            records.append(TopicRecord(name=name, topic_id=topic_id))
            records.extend(self._partition_record(topic_id, index) for index in range(max(ids) + 1))
        if records:
            self._commit(records, now_ms)

    @property
    def plain_config(self) -> TopicConfig:
        """The settings of a topic for which nothing is set. Topics share it."""
        if self._plain_config is None:
            self._plain_config = TopicConfig(self.config)
        return self._plain_config

    # --- finding ---------------------------------------------------------------------------------------

    def topic(self, name: str) -> Topic:
        """Raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION (3)."""
        topic = self.topics.get(name)
        if topic is None:
            raise error_for(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}")
        return topic

    def topic_by_id(self, topic_id: bytes) -> Topic:
        """Raises KafkaError: UNKNOWN_TOPIC_ID (100)."""
        topic = self.topics_by_id.get(topic_id)
        if topic is None:
            raise error_for(ErrorCode.UNKNOWN_TOPIC_ID, f"there is no topic with id {topic_id.hex()}")
        return topic

    def partitions(self) -> Iterable[Partition]:
        """Every partition there is."""
        for topic in self.topics.values():
            yield from topic.partitions

    # --- creating --------------------------------------------------------------------------------------

    def plan_topic(
        self,
        name: str,
        partitions: int = -1,
        replication_factor: int = -1,
        assignments: Mapping[int, Sequence[int]] | None = None,
        configs: Mapping[str, str | None] | None = None,
    ) -> NewTopic:
        """Check one topic that is wanted, as `Planner.new_topic` does."""
        return Planner(self).new_topic(name, partitions, replication_factor, assignments, configs)

    def create_topics(self, topics: Sequence[NewTopic], now_ms: int) -> list[Topic]:
        """Create topics that `plan_topic` found good, all in one step.

        Raises:
            StorageError: the metadata log cannot be written; nothing was created.
        """
        records: list[Message] = []
        for new in topics:
            topic_id = random_uuid()
            records.append(TopicRecord(name=new.name, topic_id=topic_id))
            for name, text in new.config.overrides.items():
                records.append(_config_record(new.name, name, text))
            records.extend(self._partition_record(topic_id, index) for index in range(new.partitions))
        if records:
            self._commit(records, now_ms)
            _tell("created", [f"{new.name} with {new.partitions} partitions" for new in topics])
        return [self.topics[new.name] for new in topics]

    def _partition_record(self, topic_id: bytes, index: int) -> PartitionRecord:
        return PartitionRecord(
            partition_id=index,
            topic_id=topic_id,
            replicas=[self.node_id],
            isr=[self.node_id],
            leader=self.node_id,
            leader_epoch=0,
            partition_epoch=0,
            directories=[self._store.directory_id] if self._metadata.level >= DIRECTORIES_SINCE else None,
        )

    # --- changing --------------------------------------------------------------------------------------

    def add_partitions(self, wanted: Mapping[str, int], now_ms: int) -> None:
        """Let topics grow to so many partitions, which `Planner.growth` found good, all in one step.

        Raises:
            StorageError: the metadata log cannot be written; nothing has changed.
        """
        records: list[Message] = []
        for name, count in wanted.items():
            topic = self.topics[name]
            added = range(len(topic.partitions), count)
            records.extend(self._partition_record(topic.id, index) for index in added)
        if records:
            self._commit(records, now_ms)

    def alter(self, records: Sequence[ConfigRecord] | Sequence[ClientQuotaRecord], now_ms: int) -> None:
        """Change settings, or quotas of clients, which have been found good, in one step.

        Raises:
            StorageError: the metadata log cannot be written; nothing has changed.
        """
        if records:
            self._commit(records, now_ms)

    def set_features(self, levels: Mapping[str, int], now_ms: int) -> None:
        """Settle on levels of features.

        Raises:
            StorageError: the metadata log cannot be written; nothing has changed.
        """
        changed = {name: level for name, level in levels.items() if self.features.get(name) != level}
        if changed:
            self._commit(
                [FeatureLevelRecord(name=name, feature_level=level) for name, level in changed.items()],
                now_ms,
            )

    @property
    def metadata_end_offset(self) -> int:
        """Where the cluster's own log ends."""
        return self._metadata.end_offset

    # --- deleting --------------------------------------------------------------------------------------

    def delete_topics(self, topics: Sequence[Topic], now_ms: int) -> None:
        """Delete topics and their data.

        Raises:
            StorageError: the metadata log cannot be written; nothing was deleted.
        """
        if topics:
            self._commit([RemoveTopicRecord(topic_id=topic.id) for topic in topics], now_ms)
            for topic in topics:
                for partition in topic.partitions:
                    partition.close()
                    self._store.delete_log(topic.name, partition.index, topic.id)
            _tell("deleted", [topic.name for topic in topics])

    # --- producers -------------------------------------------------------------------------------------

    def skip_producer_ids(self, seen: int) -> None:
        """Begin above a producer id that partitions hold, where the metadata log does not know of it.

        Ids are given out in blocks: the rest of the block of `seen`, and the next one, may have been given
        to producers that had not written yet.
        """
        if seen >= self._producer_ids_end:
            first = (seen // PRODUCER_ID_BLOCK + 2) * PRODUCER_ID_BLOCK
            logger.warning(
                "partitions hold producer id %d, but %s ends its ids at %d: new ones begin at %d",
                seen,
                METADATA_TOPIC,
                self._producer_ids_end,
                first,
            )
            self._next_producer_id = self._producer_ids_end = first

    def new_producer_id(self, now_ms: int) -> int:
        """A producer id never given before, not even by an earlier run on the same directory.

        What partitions hold has to be told to `skip_producer_ids` before.

        Raises:
            StorageError: the metadata log cannot be written.
        """
        if self._next_producer_id >= self._producer_ids_end:
            end = self._producer_ids_end + PRODUCER_ID_BLOCK
            self._commit([ProducerIdsRecord(broker_id=self.node_id, next_producer_id=end)], now_ms)
        producer_id = self._next_producer_id
        self._next_producer_id += 1
        return producer_id

    # --- the state -------------------------------------------------------------------------------------

    def _commit(self, records: Sequence[Message], now_ms: int) -> None:
        self._metadata.append(records, now_ms)
        for record in records:
            self._apply(record)

    def _apply(self, record: Message) -> None:
        """Change the state as a metadata record says. Whoever else changes it is wrong."""
        if isinstance(record, TopicRecord):
            topic = Topic(record.name, record.topic_id, self.plain_config)
            self.topics[topic.name] = topic
            self.topics_by_id[topic.id] = topic
            self.folded_names[folded(topic.name)] = topic.name
        elif isinstance(record, PartitionRecord):
            self._apply_partition(record)
        elif isinstance(record, PartitionChangeRecord):
            self._apply_partition_change(record)
        elif isinstance(record, ConfigRecord):
            self._apply_config(record)
        elif isinstance(record, ClientQuotaRecord):
            self._apply_quota(record)
        elif isinstance(record, RemoveTopicRecord):
            removed = self.topics_by_id.pop(record.topic_id, None)
            if removed is not None:
                del self.topics[removed.name]
                self.folded_names.pop(folded(removed.name), None)
        elif isinstance(record, ProducerIdsRecord):
            self._producer_ids_end = max(self._producer_ids_end, record.next_producer_id)
        elif isinstance(record, FeatureLevelRecord):
            self.features[record.name] = record.feature_level
            if record.name == METADATA_FEATURE:
                self._metadata.level = record.feature_level

    def _apply_partition(self, record: PartitionRecord) -> None:
        topic = self.topics_by_id.get(record.topic_id)
        if topic is None or record.partition_id != len(topic.partitions):
            return
        partition = Partition(
            topic.name,
            topic.id,
            record.partition_id,
            record.leader_epoch,
            topic.config,
            self._store,
            self.opened,
        )
        topic.partitions.append(partition)
        self._note_leader(partition, record.leader)

    def _apply_partition_change(self, record: PartitionChangeRecord) -> None:
        """Whenever a change names a leader, be it none or the same as before, a new epoch begins."""
        topic = self.topics_by_id.get(record.topic_id)
        if topic is None or record.leader == _SAME_LEADER or record.partition_id >= len(topic.partitions):
            return
        partition = topic.partitions[record.partition_id]
        partition.leader_epoch += 1
        self._note_leader(partition, record.leader)

    def _note_leader(self, partition: Partition, leader: int) -> None:
        if leader == self.node_id:
            self._leaderless.pop(partition, None)
        else:
            self._leaderless[partition] = None

    def _lead_all(self, now_ms: int) -> None:
        """Lead every partition, in an epoch after the last: Apache Kafka leaves them without a leader.

        Clients that have seen the epoch without a leader would wait for ever for a later one (KIP-320).
        """
        has_elr = self._metadata.level >= ELIGIBLE_REPLICAS_SINCE
        records = [
            PartitionChangeRecord(
                partition_id=partition.index,
                topic_id=partition.topic_id,
                leader=self.node_id,
                isr=[self.node_id],
                eligible_leader_replicas=[] if has_elr else None,
                last_known_elr=[] if has_elr else None,
            )
            for partition in self._leaderless
            if self.topics_by_id.get(partition.topic_id) is not None
        ]
        if records:
            self._commit(records, now_ms)
        self._leaderless.clear()

    def _apply_config(self, record: ConfigRecord) -> None:
        if record.resource_type == BROKER_RESOURCE:
            self._apply_broker_config(record)
            return
        if record.resource_type != TOPIC_RESOURCE:
            place = record.resource_type, record.resource_name
            kept = self.kept.setdefault(place, {})
            _put(kept, record)
            if not kept:
                del self.kept[place]
            return
        topic = self.topics.get(record.resource_name)
        # A directory written by Apache Kafka may name settings that mean nothing here.
        if topic is None or record.name not in self.config.topic_keys:
            return
        overrides = dict(topic.config.overrides)
        _put(overrides, record)
        self._configure(topic, overrides)

    def _apply_quota(self, record: ClientQuotaRecord) -> None:
        entity = entity_of({part.entity_type: part.entity_name for part in record.entity})
        values = self.quotas.setdefault(entity, {})
        if record.remove:
            values.pop(record.key, None)
        else:
            values[record.key] = record.value
        if not values:
            del self.quotas[entity]

    def _apply_broker_config(self, record: ConfigRecord) -> None:
        if record.resource_name not in ("", str(self.node_id)):
            return
        _put(self.config.dynamic if record.resource_name else self.config.dynamic_defaults, record)
        self._plain_config = None
        if record.name in BROKER_KEYS:
            for topic in self.topics.values():
                self._configure(topic, topic.config.overrides)

    def _configure(self, topic: Topic, overrides: Mapping[str, str]) -> None:
        topic.config = TopicConfig(self.config, overrides) if overrides else self.plain_config
        for partition in topic.partitions:
            partition.configure(topic.config)


def _put(texts: dict[str, str], record: ConfigRecord) -> None:
    if record.value is None:
        texts.pop(record.name, None)
    else:
        texts[record.name] = record.value


def _tell(what: str, topics: Sequence[str]) -> None:
    """Log what has happened to topics: a line for each of a few, one line for many."""
    if len(topics) <= TOPICS_TOLD:
        for topic in topics:
            logger.info("%s topic %s", what, topic)
    else:
        told = ", ".join(topics[:TOPICS_TOLD])
        logger.info("%s %d topics: %s and %d more", what, len(topics), told, len(topics) - TOPICS_TOLD)


def _config_record(topic: str, name: str, text: str | None) -> ConfigRecord:
    return ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name=topic, name=name, value=text)
