"""What exists: topics with their ids, partitions and settings, and the numbers given to producers.

Every change is first decided, then written to the metadata log as records, then applied; a restart
applies the same records again. So there is one place that changes the state (`_apply`), and what a
restart brings back is what was there.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from penstock.broker.config import BrokerConfig, TopicConfig
from penstock.broker.config_keys import BROKER_KEYS
from penstock.broker.metadata import TOPIC_NAME as METADATA_TOPIC
from penstock.broker.metadata import MetadataLog
from penstock.broker.partition import Partition
from penstock.broker.quotas import Entity, entity_of
from penstock.errors import ConfigError
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.messages.client_quota_record import ClientQuotaRecord
from penstock.protocol.messages.config_record import ConfigRecord
from penstock.protocol.messages.feature_level_record import FeatureLevelRecord
from penstock.protocol.messages.partition_record import PartitionRecord
from penstock.protocol.messages.producer_ids_record import ProducerIdsRecord
from penstock.protocol.messages.remove_topic_record import RemoveTopicRecord
from penstock.protocol.messages.topic_record import TopicRecord
from penstock.protocol.uuid import ZERO_UUID, random_uuid

if TYPE_CHECKING:
    from penstock.broker.storage import LogStore
    from penstock.protocol.message import Message

logger = logging.getLogger("penstock.broker")

TOPIC_NAME_LENGTH_MAX = 249
"""A partition's directory is the name, a dash and a number; file names end at 255 bytes."""

PARTITIONS_PER_REQUEST_MAX = 10_000
"""Kafka's own limit, which keeps one request from claiming all memory."""

PRODUCER_ID_BLOCK = 1000
"""Producer ids are reserved in blocks, so that one record covers a thousand producers."""

OFFSETS_TOPIC = "__consumer_offsets"

INTERNAL_TOPICS = frozenset((OFFSETS_TOPIC, "__transaction_state", "__share_group_state"))

TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
"""Kinds of things that have settings, as DescribeConfigs and ConfigRecord number them."""

METADATA_VERSION = 25
"""4.0-IV3: the feature level whose records we write."""

METADATA_FEATURE = "metadata.version"

_LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+")


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


class NewTopic(NamedTuple):
    """A topic that was found good and can be created."""

    name: str
    partitions: int
    config: TopicConfig


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
        self._store = store
        self._folded_names: dict[str, str] = {}
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
        """Check a topic that somebody wants; -1 stands for the broker's default.

        Raises:
            KafkaError: INVALID_TOPIC_EXCEPTION (17), TOPIC_ALREADY_EXISTS (36), INVALID_PARTITIONS (37),
                INVALID_REPLICATION_FACTOR (38), INVALID_REPLICA_ASSIGNMENT (39), INVALID_CONFIG (40)
                or INVALID_REQUEST (42), as it applies.
        """
        check_topic_name(name)
        if name in self.topics:
            raise error_for(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
        other = self._folded_names.get(_folded(name))
        if other is not None:
            raise error_for(
                ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {other}"
            )
        if assignments:
            if partitions != -1 or replication_factor != -1:
                raise error_for(
                    ErrorCode.INVALID_REQUEST,
                    "with replicas assigned by hand, partitions and replication factor must be -1",
                )
            self._check_assignments(assignments)
            partitions = len(assignments)
        else:
            partitions = self._partition_count(partitions)
            self._check_replication_factor(replication_factor)
        return NewTopic(name, partitions, self._topic_config(configs or {}))

    def _partition_count(self, partitions: int) -> int:
        if partitions == -1:
            return self.config.integer("num.partitions")
        if partitions <= 0:
            raise error_for(
                ErrorCode.INVALID_PARTITIONS, f"a topic needs at least one partition, not {partitions}"
            )
        if partitions > PARTITIONS_PER_REQUEST_MAX:
            raise error_for(
                ErrorCode.POLICY_VIOLATION,
                f"{partitions} partitions at once; the most is {PARTITIONS_PER_REQUEST_MAX}",
            )
        return partitions

    def _check_replication_factor(self, factor: int) -> None:
        if factor == -1:
            factor = self.config.integer("default.replication.factor")
        if factor <= 0:
            raise error_for(
                ErrorCode.INVALID_REPLICATION_FACTOR, f"a topic needs at least one replica, not {factor}"
            )
        if factor > 1:
            raise error_for(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"a replication factor of {factor} needs as many brokers; there is 1",
            )

    def _check_assignments(self, assignments: Mapping[int, Sequence[int]]) -> None:
        if sorted(assignments) != list(range(len(assignments))):
            raise error_for(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT, "partitions must be numbered from 0 without gaps"
            )
        if len(assignments) > PARTITIONS_PER_REQUEST_MAX:
            self._partition_count(len(assignments))
        self._check_brokers(assignments)

    def _check_brokers(self, assignments: Mapping[int, Sequence[int]]) -> None:
        for index, replicas in assignments.items():
            if list(replicas) != [self.node_id]:
                raise error_for(
                    ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                    f"partition {index} on brokers {list(replicas)}; there is only broker {self.node_id}",
                )

    def _topic_config(self, configs: Mapping[str, str | None]) -> TopicConfig:
        texts = {name: text for name, text in configs.items() if text is not None}
        if len(texts) < len(configs):
            missing = ", ".join(name for name in configs if name not in texts)
            raise error_for(
                ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {missing}"
            )
        try:
            return TopicConfig(self.config, texts)
        except ConfigError as error:
            raise error_for(ErrorCode.INVALID_CONFIG, str(error)) from None

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
            for new in topics:
                logger.info("created topic %s with %d partitions", new.name, new.partitions)
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
            directories=[self._store.directory_id],
        )

    # --- changing --------------------------------------------------------------------------------------

    def plan_partitions(self, name: str, count: int, assignments: Sequence[Sequence[int]] | None) -> Topic:
        """Check that a topic may grow to `count` partitions; `assignments` are the brokers of the new ones.

        Raises:
            KafkaError: UNKNOWN_TOPIC_OR_PARTITION (3), INVALID_PARTITIONS (37), INVALID_REPLICA_ASSIGNMENT
                (39) or POLICY_VIOLATION (44), as it applies.
        """
        topic = self.topic(name)
        have = len(topic.partitions)
        if count == have:
            raise error_for(ErrorCode.INVALID_PARTITIONS, f"Topic already has {have} partition(s).")
        if count < have:
            raise error_for(
                ErrorCode.INVALID_PARTITIONS,
                f"The topic {name} currently has {have} partition(s); {count} would not be an increase.",
            )
        if count - have > PARTITIONS_PER_REQUEST_MAX:
            self._partition_count(count - have)
        if assignments is not None:
            if len(assignments) != count - have:
                raise error_for(
                    ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                    f"{count - have} partitions are to be added, {len(assignments)} assigned",
                )
            self._check_brokers(dict(enumerate(assignments, have)))
        return topic

    def add_partitions(self, topic: Topic, count: int, now_ms: int) -> None:
        """Let a topic grow to `count` partitions, which `plan_partitions` found good.

        Raises:
            StorageError: the metadata log cannot be written; nothing has changed.
        """
        added = range(len(topic.partitions), count)
        self._commit([self._partition_record(topic.id, index) for index in added], now_ms)

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
                logger.info("deleted topic %s", topic.name)

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
            topic = Topic(record.name, record.topic_id, TopicConfig(self.config))
            self.topics[topic.name] = topic
            self.topics_by_id[topic.id] = topic
            self._folded_names[_folded(topic.name)] = topic.name
        elif isinstance(record, PartitionRecord):
            self._apply_partition(record)
        elif isinstance(record, ConfigRecord):
            self._apply_config(record)
        elif isinstance(record, ClientQuotaRecord):
            self._apply_quota(record)
        elif isinstance(record, RemoveTopicRecord):
            removed = self.topics_by_id.pop(record.topic_id, None)
            if removed is not None:
                del self.topics[removed.name]
                self._folded_names.pop(_folded(removed.name), None)
        elif isinstance(record, ProducerIdsRecord):
            self._producer_ids_end = max(self._producer_ids_end, record.next_producer_id)
        elif isinstance(record, FeatureLevelRecord):
            self.features[record.name] = record.feature_level

    def _apply_partition(self, record: PartitionRecord) -> None:
        topic = self.topics_by_id.get(record.topic_id)
        if topic is None or record.partition_id != len(topic.partitions):
            return
        partition = Partition(
            topic.name, topic.id, record.partition_id, record.leader_epoch, topic.config, self._store
        )
        topic.partitions.append(partition)

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
        if record.name in BROKER_KEYS:
            for topic in self.topics.values():
                self._configure(topic, topic.config.overrides)

    def _configure(self, topic: Topic, overrides: Mapping[str, str]) -> None:
        topic.config = TopicConfig(self.config, overrides)
        for partition in topic.partitions:
            partition.configure(topic.config)


def _put(texts: dict[str, str], record: ConfigRecord) -> None:
    if record.value is None:
        texts.pop(record.name, None)
    else:
        texts[record.name] = record.value


def check_topic_name(name: str) -> None:
    """Raises KafkaError: INVALID_TOPIC_EXCEPTION (17), with the reason."""
    if not name:
        reason = "the empty string is no topic name"
    elif name in (".", ".."):
        reason = f"{name!r} is no topic name"
    elif len(name) > TOPIC_NAME_LENGTH_MAX:
        reason = f"a topic name has at most {TOPIC_NAME_LENGTH_MAX} characters, not {len(name)}"
    elif not _LEGAL_NAME.fullmatch(name):
        reason = f"topic name {name!r} has characters other than ASCII letters, digits, '.', '_' and '-'"
    else:
        return
    raise error_for(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)


def _folded(name: str) -> str:
    """Names that differ only in dots and underscores collide in metric names, so Kafka forbids them."""
    return name.replace(".", "_")


def _config_record(topic: str, name: str, text: str | None) -> ConfigRecord:
    return ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name=topic, name=name, value=text)
