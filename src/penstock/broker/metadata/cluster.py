"""`ClusterState`: the cluster's metadata at one broker. Changes are checked, committed, then applied.

`ClusterState` connects three parts: the metadata (`image`), the topics and logs that this broker stores
(`replica_manager`), and the `Authority`, which checks changes and writes the metadata log. A single broker is
its own authority (`own_authority`); in a cluster of several brokers, the controller is
(`penstock.broker.replication.control.authority`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from penstock.broker.metadata.image import ALL_BROKERS, ClusterImage
from penstock.broker.metadata.own_authority import OwnAuthority
from penstock.broker.metadata.planning import PlannedTopic, Planner, partition_record
from penstock.broker.metadata.replica_manager import ReplicaManager, Topic
from penstock.broker.partitions.internal_topics import (
    METADATA_TOPIC,
    OFFSETS_TOPIC,
    SHARE_STATE_TOPIC,
    TRANSACTIONS_TOPIC,
)
from penstock.broker.quota_entities import Entity
from penstock.common.logs import logger_named
from penstock.errors import KafkaError, StorageError
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.field_values import TOPIC_RESOURCE
from penstock.protocol.messages.config_record import ConfigRecord
from penstock.protocol.messages.feature_level_record import FeatureLevelRecord
from penstock.protocol.messages.producer_ids_record import ProducerIdsRecord
from penstock.protocol.messages.remove_topic_record import RemoveTopicRecord
from penstock.protocol.messages.topic_record import TopicRecord
from penstock.protocol.uuid import random_uuid

if TYPE_CHECKING:
    from penstock.broker.config.values import BrokerConfig, TopicConfig
    from penstock.broker.metadata.planning import Authority
    from penstock.broker.metadata.replica_manager import Replicating
    from penstock.broker.partitions.log_store import LogStore
    from penstock.broker.partitions.partition import Partition
    from penstock.broker.security.image import SecurityImage
    from penstock.protocol.message import Message

logger = logger_named("penstock.broker")

PRODUCER_ID_BLOCK = 1000
"""The number of producer ids that one metadata record reserves."""

TOPICS_TOLD = 10
"""The maximum number of topics created or deleted in one request for which each topic has a line in the
broker's log. More topics share one line.
"""


_FACTORS = {
    OFFSETS_TOPIC: "offsets.topic.replication.factor",
    TRANSACTIONS_TOPIC: "transaction.state.log.replication.factor",
    SHARE_STATE_TOPIC: "share.coordinator.state.topic.replication.factor",
}


class ClusterState:
    """The metadata of a cluster, as one broker reads them from the metadata log and changes them."""

    def __init__(
        self,
        config: BrokerConfig,
        store: LogStore,
        now_ms: int,
        authority: Authority | None = None,
        replicating: Replicating | None = None,
    ) -> None:
        """Open the metadata. Without `authority`, the broker replays its own log and leads every partition.

        `config` has the settings at the start of the broker, and does not change; `self.config` also has
        those that clients set. `replicating` connects partitions with their replicas in a cluster of several
        brokers.

        Raises:
            StorageError: the metadata log cannot be read or written.
        """
        self.node_id = store.node_id
        self.image = image = ClusterImage()
        self.config = config.with_dynamic(
            image.broker_configs.setdefault(str(self.node_id), {}),
            image.broker_configs.setdefault(ALL_BROKERS, {}),
        )
        self.setting_checks: list[Callable[[Mapping[str, str]], None]] = []
        """Functions that check dynamic settings before clients may set them for this broker. They raise
        ConfigError for a wrong value.
        """
        self.replicas = ReplicaManager(self.image, self.config, store, replicating)
        self.login_secret: Callable[[], bytes] = store.login_secret
        """A function that returns a secret stored with the cluster's data.

        Salts for nonexistent SCRAM users are derived from it.
        """
        self._next_producer_id = self._own_ids_end = 0
        if authority is None:
            self.authority: Authority = (own := OwnAuthority(image, self.replicas, store))
            own.begin(config, now_ms)
        else:
            self.authority = authority
        self.cluster_id = self.authority.cluster_id
        self.mutation_tokens = self.authority.mutation_tokens

    # --- what there is ---------------------------------------------------------------------------------

    @property
    def topics(self) -> dict[str, Topic]:
        """A dict from name to topic, for all topics of the cluster."""
        return self.replicas.topics

    @property
    def topics_by_id(self) -> dict[bytes, Topic]:
        """A dict from id to topic, for all topics of the cluster."""
        return self.replicas.topics_by_id

    @property
    def opened(self) -> dict[Partition, None]:
        """The partitions whose logs are open."""
        return self.replicas.opened

    @property
    def plain_config(self) -> TopicConfig:
        """The effective settings of topics without settings of their own."""
        return self.replicas.plain_config

    @property
    def security(self) -> SecurityImage:
        """The ACL entries, SCRAM credentials and delegation tokens of the cluster."""
        return self.image.security

    @property
    def resource_configs(self) -> dict[tuple[int, str], dict[str, str]]:
        """Settings of groups and of metrics subscriptions, by resource type and name."""
        return self.image.resource_configs

    @property
    def quotas(self) -> dict[Entity, dict[str, float]]:
        """Client quotas, by entity and quota name."""
        return self.image.quotas

    @property
    def features(self) -> dict[str, int]:
        """A dict from the name of each finalized feature to its level."""
        return self.image.features

    def topic(self, name: str) -> Topic:
        """Return the topic with this name.

        Raises:
            KafkaError: UNKNOWN_TOPIC_OR_PARTITION (3).
        """
        topic = self.replicas.topics.get(name)
        if topic is None:
            raise error_for(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}")
        return topic

    def topic_by_id(self, topic_id: bytes) -> Topic:
        """Return the topic with this id.

        Raises:
            KafkaError: UNKNOWN_TOPIC_ID (100).
        """
        topic = self.replicas.topics_by_id.get(topic_id)
        if topic is None:
            raise error_for(ErrorCode.UNKNOWN_TOPIC_ID, f"there is no topic with id {topic_id.hex()}")
        return topic

    def partitions(self) -> Iterable[Partition]:
        """Return all partitions of all topics."""
        return self.replicas.partitions()

    # --- creating --------------------------------------------------------------------------------------

    def catch_up(self) -> None:
        """Apply all metadata records that have been written, before a change is checked."""
        self.authority.catch_up()

    def plan_topic(
        self, name: str, partitions: int = -1, *, configs: Mapping[str, str | None] | None = None
    ) -> PlannedTopic:
        """Check that a topic can be created; return its `PlannedTopic`. -1 partitions means the default.

        Raises:
            KafkaError: the topic exists, or its name or a setting is invalid; see `Planner.new_topic`.
            StorageError: too few brokers are alive according to the metadata; clients should retry.
        """
        setting = _FACTORS.get(name)
        factor, size = self.config.integer(setting or "default.replication.factor"), self.authority.size
        if setting is not None:
            factor = max(1, min(factor, size))
        try:
            return Planner(self).new_topic(name, partitions, factor, configs=configs)
        except KafkaError as error:
            if error.code != ErrorCode.INVALID_REPLICATION_FACTOR or factor > size:
                raise
            raise StorageError(f"{name} cannot be made now: {error}") from error

    def create_topic(
        self,
        name: str | None,
        partitions: int,
        settings: Mapping[str, object],
        now_ms: int,
        *,
        replicas: int | Sequence[Sequence[int]] = -1,
    ) -> str:
        """Create one topic for a caller in this process, and return its name.

        If `name` is None, a name is generated. `settings` have underscores instead of dots.
        `replicas` is the replication factor, -1 for the broker's default, or the brokers of each partition.

        Raises:
            KafkaError: the topic exists, or its name, replicas or a setting are invalid.
            StorageError: the metadata log cannot be written; nothing was created.
        """
        topic = name if name is not None else f"topic-{random_uuid().hex()[:12]}"
        configs = {key.replace("_", "."): str(value) for key, value in settings.items()}
        planner = Planner(self)
        if isinstance(replicas, int):
            plan = planner.new_topic(topic, partitions, replicas, configs=configs)
        else:
            plan = planner.new_topic(topic, assignments=dict(enumerate(replicas)), configs=configs)
        self.create_topics([plan], now_ms)
        return topic

    def create_topics(self, topics: Sequence[PlannedTopic], now_ms: int) -> list[Topic]:
        """Create the topics that `planning.Planner` has checked, all in one batch of metadata records.

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
                partition_record(self.authority, new.name, topic_id, index, replicas)
                for index, replicas in enumerate(new.assignments)
            )
        if records:
            self._commit(records, now_ms)
            _tell("created", [f"{new.name} with {new.partitions} partitions" for new in topics])
        return [self.topics[new.name] for new in topics]

    # --- changing --------------------------------------------------------------------------------------

    def add_partitions(self, assignments: Mapping[str, Sequence[Sequence[int]]], now_ms: int) -> None:
        """Add partitions to topics, all in one batch of metadata records.

        `assignments` has the brokers of each new partition, by topic.

        Raises:
            StorageError: the metadata log cannot be written; nothing has changed.
        """
        records: list[Message] = []
        for name, assigned in assignments.items():
            topic = self.topics[name]
            for index, replicas in enumerate(assigned, len(topic.partitions)):
                records.append(partition_record(self.authority, name, topic.id, index, replicas))
        if records:
            self._commit(records, now_ms)

    def alter(self, records: Sequence[Message], now_ms: int) -> None:
        """Change settings, client quotas or security: commit checked metadata records in one batch.

        Raises:
            StorageError: the metadata log cannot be written; nothing has changed.
        """
        if records:
            self._commit(records, now_ms)

    def set_features(self, levels: Mapping[str, int], now_ms: int) -> None:
        """Set the finalized levels of features in the metadata.

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
        """The leader epoch of the metadata log."""
        return self.authority.epoch

    @property
    def metadata_end_offset(self) -> int:
        """The offset after the last metadata record."""
        return self.authority.end_offset

    # --- deleting --------------------------------------------------------------------------------------

    def delete_topics(self, topics: Sequence[Topic], now_ms: int) -> None:
        """Delete topics and their data.

        Raises:
            StorageError: the metadata log cannot be written; nothing was deleted.
        """
        if topics:
            self._commit([RemoveTopicRecord(topic_id=topic.id) for topic in topics], now_ms)
            _tell("deleted", [topic.name for topic in topics])

    # --- producers -------------------------------------------------------------------------------------

    def skip_producer_ids(self, seen: int) -> None:
        """Skip producer ids up to `seen`, found in a partition, if the metadata log has not reserved `seen`.

        Ids are assigned in blocks. All ids in the block of `seen` and in the next block are skipped, since
        they may belong to producers that have not written yet.
        """
        if seen >= self.image.producer_ids_end:
            first = (seen // PRODUCER_ID_BLOCK + 2) * PRODUCER_ID_BLOCK
            logger.warning(
                "partitions hold producer id %d, but %s ends its ids at %d: new ones begin at %d",
                seen,
                METADATA_TOPIC,
                self.image.producer_ids_end,
                first,
            )
            self._next_producer_id, self._own_ids_end = first, 0

    def new_producer_id(self, now_ms: int) -> int:
        """Return a producer id that was never assigned before, not even in an earlier run on this directory.

        Before the first call, the producer ids found in partitions must be passed to `skip_producer_ids`.

        Raises:
            StorageError: the metadata log cannot be written.
        """
        if self._next_producer_id >= self._own_ids_end:
            self.catch_up()
            first = max(self.image.producer_ids_end, self._next_producer_id)
            end = first + PRODUCER_ID_BLOCK
            self._commit([ProducerIdsRecord(broker_id=self.node_id, next_producer_id=end)], now_ms)
            self._next_producer_id, self._own_ids_end = first, end
        producer_id = self._next_producer_id
        self._next_producer_id += 1
        return producer_id

    # --- the state -------------------------------------------------------------------------------------

    def _commit(self, records: Sequence[Message], now_ms: int) -> None:
        self.authority.commit(records, now_ms)


def _tell(what: str, topics: Sequence[str]) -> None:
    """Log that topics were created or deleted: one line per topic, or one for all if there are many."""
    if len(topics) <= TOPICS_TOLD:
        for topic in topics:
            logger.info("%s topic %s", what, topic)
    else:
        told = ", ".join(topics[:TOPICS_TOLD])
        logger.info("%s %d topics: %s and %d more", what, len(topics), told, len(topics) - TOPICS_TOLD)


def _config_record(topic: str, name: str, text: str | None) -> ConfigRecord:
    return ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name=topic, name=name, value=text)
