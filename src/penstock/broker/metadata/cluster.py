"""The cluster as one broker runs it: changes are decided, written to the metadata log, and then applied.

`Cluster` joins three things: the image of the cluster (`image`), the metadata log that keeps it
(`metadata_log`), and what this broker keeps of it (`penstock.broker.metadata.replica_manager`). A change is
a sequence of records; what applies them at runtime applies them at a restart, so that a
restart brings back what was there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from penstock.broker.config.resource_types import TOPIC_RESOURCE
from penstock.broker.metadata.image import (
    ALL_BROKERS,
    FIRST_FEATURES,
    METADATA_FEATURE,
    METADATA_VERSION,
    ClusterImage,
)
from penstock.broker.metadata.metadata_log import DIRECTORIES_SINCE, ELIGIBLE_REPLICAS_SINCE, MetadataLog
from penstock.broker.metadata.planning import NewTopic, Planner
from penstock.broker.metadata.replica_manager import ReplicaManager, Topic
from penstock.broker.partitions.internal_topics import METADATA_TOPIC
from penstock.broker.partitions.log_store import NOT_REGISTERED
from penstock.broker.quota_entities import Entity
from penstock.common.logs import logger_named
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.messages.config_record import ConfigRecord
from penstock.protocol.messages.feature_level_record import FeatureLevelRecord
from penstock.protocol.messages.partition_change_record import PartitionChangeRecord
from penstock.protocol.messages.partition_record import PartitionRecord
from penstock.protocol.messages.producer_ids_record import ProducerIdsRecord
from penstock.protocol.messages.remove_topic_record import RemoveTopicRecord
from penstock.protocol.messages.topic_record import TopicRecord
from penstock.protocol.uuid import random_uuid

if TYPE_CHECKING:
    from penstock.broker.config.values import BrokerConfig, TopicConfig
    from penstock.broker.metadata.planning import Placing
    from penstock.broker.partitions.log_store import LogStore
    from penstock.broker.partitions.partition import Partition
    from penstock.broker.requests.quotas import MutationTokens
    from penstock.broker.security.image import SecurityImage
    from penstock.protocol.message import Message

logger = logger_named("penstock.broker")

PRODUCER_ID_BLOCK = 1000
"""Producer ids are reserved in blocks, so that one record covers a thousand producers."""

TOPICS_TOLD = 10
"""Topics that one request creates or deletes and that have a line of their own in the broker's log."""


class Cluster:
    """The topics of one broker, in step with its metadata log."""

    placing: Placing | None = None
    """What places replicas on brokers; None in a cluster of one."""
    metadata_on_disk: MetadataLog | None = None
    """The metadata log of this broker alone, where it is on disk."""

    def __init__(self, config: BrokerConfig, store: LogStore, now_ms: int) -> None:
        """Replay the metadata log; lead every partition; bring the stored data in line with the records.

        `config` is what the broker was started with, and does not change: `self.config` has the settings
        that clients have made over it.

        Raises:
            StorageError: the metadata log cannot be read or written.
        """
        self.node_id = store.node_id
        self.cluster_id = store.cluster_id
        self.image = image = ClusterImage()
        self.config = config.with_dynamic(
            image.broker_configs.setdefault(str(self.node_id), {}),
            image.broker_configs.setdefault(ALL_BROKERS, {}),
        )
        self.setting_checks: list[Callable[[Mapping[str, str]], None]] = []
        """What else looks at settings of this broker that clients make; each raises ConfigError."""
        self.replicas = self._new_replicas(store)
        self._store = store
        self.login_secret: Callable[[], bytes] = store.login_secret
        """Returns a secret that stays with the data of the cluster, for salts."""
        self._next_producer_id = self._producer_ids_end = 0
        self.mutation_tokens: MutationTokens = {}
        """What clients with a quota may still create and delete."""
        self._begin(config, now_ms)

    def _new_replicas(self, store: LogStore) -> ReplicaManager:
        return ReplicaManager(self.image, self.config, store)

    def _begin(self, config: BrokerConfig, now_ms: int) -> None:
        """Read the metadata log, or begin it. `config` is what the broker was started with.

        Raises:
            StorageError: it cannot be read or written.
        """
        store = self._store
        log = store.metadata_log()
        self._metadata = MetadataLog(log, store.metadata_files)
        if store.metadata_directory is not None:
            self.metadata_on_disk = self._metadata
        is_new = True
        removed_ids: set[bytes] = set()
        for record in self._metadata.replay():
            is_new = False
            self._apply(record)
            if isinstance(record, RemoveTopicRecord):
                removed_ids.add(record.topic_id)
        self._next_producer_id = self._producer_ids_end
        if is_new:
            self._commit(self._first_records(config), now_ms)
        self._metadata.level = self.features.get(METADATA_FEATURE, METADATA_VERSION)
        store.broker_epoch = self._metadata.registrations.get(self.node_id, NOT_REGISTERED)
        self._lead_all(now_ms)
        self._take_in_unknown(removed_ids, now_ms)

    def _first_records(self, config: BrokerConfig) -> list[Message]:
        """The records that a new metadata log begins with: those of `kafka-storage format`, if it was run.

        Raises:
            ConfigError: the setting that chooses the level names no release.
            StorageError: what the formatting has left cannot be read.
        """
        directory = self._store.metadata_directory
        if directory is not None and os.path.exists(f"{directory}/bootstrap.checkpoint"):
            from penstock.broker.metadata.takeover import bootstrap_records  # few directories are formatted

            found = bootstrap_records(directory)
            if any(isinstance(each, FeatureLevelRecord) and each.name == METADATA_FEATURE for each in found):
                return found
        levels = _first_features(config).items()
        return [FeatureLevelRecord(name=name, feature_level=level) for name, level in levels]

    def _take_in_unknown(self, removed_ids: set[bytes], now_ms: int) -> None:
        """Write records for topics whose data were written by another broker.

        Behind a snapshot records of topics that were deleted are missing: what is not in the metadata stays
        where it is.
        """
        records: list[Message] = []
        for name, found_id, partitions in self.replicas.reconcile(removed_ids):
            if self._metadata.has_snapshot:
                logger.warning("leaving topic %s in %s alone: it was deleted", name, self._store.describe())
                continue
            topic_id = found_id or random_uuid()
            logger.warning("taking in topic %s, whose data were found in %s", name, self._store.describe())
            records.append(TopicRecord(name=name, topic_id=topic_id))
            records.extend(self._partition_record(name, topic_id, index) for index in range(partitions))
        if records:
            self._commit(records, now_ms)

    # --- what there is ---------------------------------------------------------------------------------

    @property
    def topics(self) -> dict[str, Topic]:
        """Topics by name."""
        return self.replicas.topics

    @property
    def topics_by_id(self) -> dict[bytes, Topic]:
        """Topics by id."""
        return self.replicas.topics_by_id

    @property
    def opened(self) -> dict[Partition, None]:
        """The partitions whose logs are open."""
        return self.replicas.opened

    @property
    def plain_config(self) -> TopicConfig:
        """The settings of a topic for which nothing is set."""
        return self.replicas.plain_config

    @property
    def security(self) -> SecurityImage:
        """Access control entries, SCRAM credentials, delegation tokens."""
        return self.image.security

    @property
    def resource_configs(self) -> dict[tuple[int, str], dict[str, str]]:
        """Settings of groups and of metrics subscriptions, by kind of resource and name."""
        return self.image.resource_configs

    @property
    def quotas(self) -> dict[Entity, dict[str, float]]:
        """Quotas of clients, by entity and name of the quota."""
        return self.image.quotas

    @property
    def features(self) -> dict[str, int]:
        """The level of each finalized feature."""
        return self.image.features

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
        return self.replicas.partitions()

    # --- creating --------------------------------------------------------------------------------------

    def catch_up(self) -> None:
        """Take in all metadata that have been written, since a change is about to be decided.

        A broker by itself has all of them at any time.
        """

    def plan_topic(
        self, name: str, partitions: int = -1, *, configs: Mapping[str, str | None] | None = None
    ) -> NewTopic:
        """Check one topic that is wanted; -1 stands for the broker's default number of partitions.

        Raises:
            KafkaError: the topic exists, or its name or a setting is invalid; see `Planner.new_topic`.
        """
        return Planner(self).new_topic(name, partitions, configs=configs)

    def create_topics(self, topics: Sequence[NewTopic], now_ms: int) -> list[Topic]:
        """Create topics that `planning.Planner` has approved, all in one step.

        Raises:
            StorageError: the metadata log cannot be written; nothing was created.
        """
        records: list[Message] = []
        for new in topics:
            topic_id = random_uuid()
            records.append(TopicRecord(name=new.name, topic_id=topic_id))
            for name, text in new.config.overrides.items():
                records.append(_config_record(new.name, name, text))
            records.extend(
                self._partition_record(new.name, topic_id, index, new.replicas_of(index))
                for index in range(new.partitions)
            )
        if records:
            self._commit(records, now_ms)
            _tell("created", [f"{new.name} with {new.partitions} partitions" for new in topics])
        return [self.topics[new.name] for new in topics]

    def _partition_record(
        self, name: str, topic_id: bytes, index: int, replicas: Sequence[int] = ()
    ) -> PartitionRecord:
        """The record of a new partition, on the brokers that were planned for it: here, if none were."""
        return PartitionRecord(
            partition_id=index,
            topic_id=topic_id,
            replicas=[self.node_id],
            isr=[self.node_id],
            leader=self.node_id,
            leader_epoch=0,
            partition_epoch=0,
            directories=[self._store.directory_id_of(name, index)]
            if self._metadata.level >= DIRECTORIES_SINCE
            else None,
        )

    # --- changing --------------------------------------------------------------------------------------

    def add_partitions(
        self,
        wanted: Mapping[str, int],
        now_ms: int,
        assignments: Mapping[str, Sequence[Sequence[int]]] | None = None,
    ) -> None:
        """Let topics grow to so many partitions, which `Planner.growth` has approved, all in one step.

        `assignments` are the brokers of the new ones, by topic; a cluster of one needs none.

        Raises:
            StorageError: the metadata log cannot be written; nothing has changed.
        """
        records: list[Message] = []
        for name, count in wanted.items():
            topic = self.topics[name]
            added = range(len(topic.partitions), count)
            records.extend(self._partition_record(name, topic.id, index) for index in added)
        if records:
            self._commit(records, now_ms)

    def alter(self, records: Sequence[Message], now_ms: int) -> None:
        """Change settings, quotas of clients, or security, in one step. The records have been checked.

        Raises:
            StorageError: the metadata log cannot be written; nothing has changed.
        """
        if records:
            self._commit(records, now_ms)

    def set_features(self, levels: Mapping[str, int], now_ms: int) -> None:
        """Finalize features at these levels.

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
    def metadata_epoch(self) -> int:
        """The epoch in which this node leads the quorum of the metadata log."""
        return self._metadata.epoch

    @property
    def metadata_end_offset(self) -> int:
        """The offset after the last metadata record."""
        return self._metadata.end_offset

    # --- deleting --------------------------------------------------------------------------------------

    def delete_topics(self, topics: Sequence[Topic], now_ms: int) -> None:
        """Delete topics and their data.

        Raises:
            StorageError: the metadata log cannot be written; nothing was deleted.
        """
        if topics:
            self._commit([RemoveTopicRecord(topic_id=topic.id) for topic in topics], now_ms)
            self._delete_data(topics)
            _tell("deleted", [topic.name for topic in topics])

    def _delete_data(self, topics: Sequence[Topic]) -> None:
        for topic in topics:
            self.replicas.delete(topic)

    # --- producers -------------------------------------------------------------------------------------

    def skip_producer_ids(self, seen: int) -> None:
        """Begin above a producer id that partitions hold, where the metadata log does not have it.

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

        The producer ids that partitions hold have to be passed to `skip_producer_ids` before.

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
        self.image.check(records)
        self._metadata.append(records, now_ms)
        for record in records:
            self._apply(record)

    def _apply(self, record: Message) -> None:
        """Apply a metadata record: to the image, then what this broker keeps of it."""
        self.image.apply(record)
        self.replicas.apply(record)
        if isinstance(record, ProducerIdsRecord):
            self._producer_ids_end = max(self._producer_ids_end, record.next_producer_id)
        elif isinstance(record, FeatureLevelRecord) and record.name == METADATA_FEATURE:
            self._metadata.level = record.feature_level

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
            for topic in self.image.topics.values()
            for partition in topic.partitions
            if partition.leader != self.node_id
        ]
        if records:
            self._commit(records, now_ms)


def _first_features(config: BrokerConfig) -> Mapping[str, int]:
    """The levels of features that a new cluster begins with.

    Raises:
        ConfigError: the setting that chooses them names no release.
    """
    wanted = config.text("penstock.metadata.version")
    if wanted is None and config.release is None:
        return FIRST_FEATURES
    from penstock.broker.metadata.levels import first_features  # few clusters begin as another release's

    return first_features(wanted, None if config.release is None else config.release.numbers)


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
