"""`ClusterImage`: the state of a cluster that its metadata records describe, and nothing else.

Topics with their ids and settings, partitions with their leaders and replicas, settings of brokers, groups
and metrics subscriptions, quotas, features, and the producer ids that were reserved. Only
`ClusterImage.apply` changes it, so that the same records always make the same image. One broker's part of
it (logs, directories, typed settings) is in `penstock.broker.metadata.replica_manager`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from penstock.broker.metadata.metadata_log import SECURITY_RECORDS
from penstock.broker.quota_entities import Entity, entity_of
from penstock.errors import StorageError
from penstock.protocol.field_values import BROKER_RESOURCE, TOPIC_RESOURCE
from penstock.protocol.messages.clear_elr_record import ClearElrRecord
from penstock.protocol.messages.client_quota_record import ClientQuotaRecord
from penstock.protocol.messages.config_record import ConfigRecord
from penstock.protocol.messages.feature_level_record import FeatureLevelRecord
from penstock.protocol.messages.partition_change_record import PartitionChangeRecord
from penstock.protocol.messages.partition_record import PartitionRecord
from penstock.protocol.messages.producer_ids_record import ProducerIdsRecord
from penstock.protocol.messages.remove_topic_record import RemoveTopicRecord
from penstock.protocol.messages.topic_record import TopicRecord

if TYPE_CHECKING:
    from penstock.broker.security.image import SecurityImage
    from penstock.protocol.message import Message

ALL_BROKERS = ""
"""The name of the broker resource whose settings are the defaults of all brokers (KIP-226)."""

METADATA_VERSION = 25
"""The level of `metadata.version` in which records are written: 4.0-IV3."""

METADATA_FEATURE = "metadata.version"

TRANSACTION_FEATURE = "transaction.version"

TRANSACTION_VERSION = 2
"""The level of `transaction.version` with the protocol of KIP-890, with which new clusters begin."""

ELR_FEATURE = "eligible.leader.replicas.version"

ELR_VERSION = 1
"""The level of `eligible.leader.replicas.version` with eligible leader replicas (KIP-966). New clusters do
not have it, as in Kafka 4.0."""

GROUP_FEATURE = "group.version"

GROUP_VERSION = 1
"""The level of `group.version` with the consumer groups of KIP-848, with which new clusters begin."""

SHARE_FEATURE = "share.version"

SHARE_VERSION = 1
"""The level of `share.version` with share groups (KIP-932). A cluster whose metadata do not contain the
feature has share groups, too: Apache Kafka 4.0 and 4.1 do not start if metadata contain it."""

STREAMS_FEATURE = "streams.version"

STREAMS_VERSION = 1
"""The level of `streams.version` with streams groups (KIP-1071). A cluster whose metadata do not contain the
feature has streams groups, too."""

KRAFT_FEATURE = "kraft.version"

KRAFT_VERSION = 1
"""The level of `kraft.version` with dynamic voters (KIP-853), which directories may have. Clients get level
0, and cannot change it, because the only voter stays."""

ON_UNLESS_NAMED = {SHARE_FEATURE: SHARE_VERSION, STREAMS_FEATURE: STREAMS_VERSION}
"""The features that are on in a cluster whose metadata do not contain them. Level 0 (off) is stored."""

OTHER_FEATURES = {
    TRANSACTION_FEATURE: TRANSACTION_VERSION,
    ELR_FEATURE: ELR_VERSION,
    GROUP_FEATURE: GROUP_VERSION,
    **ON_UNLESS_NAMED,
}
"""The features beside `metadata.version` that clients may set, with their highest levels."""

FIRST_FEATURES = {
    METADATA_FEATURE: METADATA_VERSION,
    TRANSACTION_FEATURE: TRANSACTION_VERSION,
    GROUP_FEATURE: GROUP_VERSION,
}
"""The feature levels of new clusters, unless a setting chooses others: every Apache Kafka 4.x supports
them."""


def metadata_level(features: Mapping[str, int]) -> int:
    """Return the level of `metadata.version` in `features`, or that of new clusters if there is none."""
    return features.get(METADATA_FEATURE, METADATA_VERSION)


def share_level(features: Mapping[str, int]) -> int:
    """Return the finalized level of `share.version`, or the highest supported one if none is set."""
    return features.get(SHARE_FEATURE, SHARE_VERSION)


def streams_level(features: Mapping[str, int]) -> int:
    """Return the finalized level of `streams.version`, or the highest supported one if none is set."""
    return features.get(STREAMS_FEATURE, STREAMS_VERSION)


_SAME_LEADER = -2
"""The leader in a PartitionChangeRecord that does not change the leader."""


class Replicas(NamedTuple):
    """The brokers with replicas of a partition. `adding` and `removing` are those of a reassignment."""

    assigned: tuple[int, ...]
    in_sync: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    eligible: tuple[int, ...] = ()
    """Replicas that may lead without being in sync, because they have all committed records (KIP-966)."""
    last_known: tuple[int, ...] = ()
    """The last leader, if the partition has no leader and its ISR is empty."""


class PartitionImage:
    """One partition: its leader, leader epoch and replicas. `leader` is -1 if the partition has none."""

    __slots__ = ("epoch", "index", "leader", "leader_epoch", "replicas", "topic_id")

    def __init__(
        self, topic_id: bytes, index: int, replicas: Replicas, leader: int, leader_epoch: int, epoch: int = 0
    ) -> None:
        self.topic_id = topic_id
        self.index = index
        self.replicas = replicas
        self.leader = leader
        self.leader_epoch = leader_epoch
        self.epoch = epoch
        """The partition epoch, which increases with every change."""


class TopicImage:
    """One topic. `partitions` are in order of their numbers; `overrides` are the topic's own settings."""

    __slots__ = ("id", "name", "overrides", "partitions")

    def __init__(self, name: str, topic_id: bytes) -> None:
        self.name = name
        self.id = topic_id
        self.overrides: Mapping[str, str] = {}
        self.partitions: list[PartitionImage] = []


class ClusterImage:
    """The state that the metadata records of a cluster describe."""

    def __init__(self) -> None:
        self.topics: dict[str, TopicImage] = {}
        self.topics_by_id: dict[bytes, TopicImage] = {}
        self.folded_names: dict[str, str] = {}
        """Topic names by the result that `folded` returns for them."""
        self.broker_configs: dict[str, dict[str, str]] = {}
        """Settings of brokers, by node id in decimal or `ALL_BROKERS`."""
        self.resource_configs: dict[tuple[int, str], dict[str, str]] = {}
        """Settings of groups and of metrics subscriptions, by resource type and name."""
        self.quotas: dict[Entity, dict[str, float]] = {}
        """Quotas of clients, by entity and name of the quota."""
        self.features: dict[str, int] = {}
        """The level of each finalized feature."""
        self.producer_ids_end = 0
        """The first producer id that no broker has reserved."""
        self._early_overrides: dict[str, dict[str, str]] = {}
        """Topic settings whose records precede that of the topic, as Apache Kafka before 3.9 writes them."""
        self._security: SecurityImage | None = None
        self._replicas: dict[Replicas, Replicas] = {}
        """The distinct `Replicas`: partitions with equal replicas share one object."""

    @property
    def security(self) -> SecurityImage:
        """The ACL entries, SCRAM credentials and delegation tokens of the cluster."""
        if self._security is None:
            from penstock.broker.security.image import SecurityImage  # few clusters have any

            self._security = SecurityImage()
        return self._security

    def check(self, records: Sequence[Message]) -> None:
        """Check that records fit the image before they are written.

        Raises:
            StorageError: a topic's name or id exists already, a partition is not the next number, a changed
                or removed object does not exist, or producer ids are assigned twice.
        """
        made: dict[bytes, str] = {}
        names: dict[str, bytes] = {}
        removed: set[bytes] = set()
        counts: dict[bytes, int] = {}
        ids_end = self.producer_ids_end
        for record in records:
            if isinstance(record, PartitionRecord):
                topic = self.topics_by_id.get(record.topic_id)
                if topic is None and record.topic_id not in made:
                    raise _unfit(f"a partition of the topic {record.topic_id.hex()}, which there is not")
                count = counts.get(record.topic_id)
                if count is None:
                    count = 0 if topic is None else len(topic.partitions)
                if record.partition_id != count:
                    raise _unfit(f"partition {record.partition_id} of a topic that has {count}")
                counts[record.topic_id] = count + 1
            elif isinstance(record, PartitionChangeRecord):
                topic = self.topics_by_id.get(record.topic_id)
                if (
                    topic is None
                    or record.topic_id in removed
                    or record.partition_id >= len(topic.partitions)
                ):
                    raise _unfit(
                        f"a change of {record.topic_id.hex()}-{record.partition_id}, which there is not"
                    )
            elif isinstance(record, TopicRecord):
                known = self.topics.get(record.name)
                if known is not None and known.id not in removed:
                    raise _unfit(f"another topic {record.name}")
                if record.name in names or record.topic_id in self.topics_by_id or record.topic_id in made:
                    raise _unfit(f"the topic {record.name} twice")
                made[record.topic_id], names[record.name] = record.name, record.topic_id
            elif isinstance(record, RemoveTopicRecord):
                if record.topic_id not in self.topics_by_id or record.topic_id in removed:
                    raise _unfit(f"the removal of the topic {record.topic_id.hex()}, which there is not")
                removed.add(record.topic_id)
            elif isinstance(record, ConfigRecord):
                if record.resource_type == TOPIC_RESOURCE and record.resource_name not in names:
                    known = self.topics.get(record.resource_name)
                    if known is None or known.id in removed:
                        raise _unfit(f"a setting of the topic {record.resource_name}, which there is not")
            elif isinstance(record, ProducerIdsRecord):
                if record.next_producer_id <= ids_end:
                    raise _unfit(f"producer ids up to {record.next_producer_id}; {ids_end} are given out")
                ids_end = record.next_producer_id

    def apply(self, record: Message) -> None:
        """Apply a metadata record. Records of other types change nothing.

        Raises:
            StorageError: the record would replace a topic by another one with the same name.
        """
        if isinstance(record, TopicRecord):
            known = self.topics.get(record.name)
            if known is not None and known.id != record.topic_id:
                raise StorageError(
                    f"the metadata log makes the topic {record.name} twice, with the ids {known.id.hex()} and"
                    f" {record.topic_id.hex()}, and does not remove the first in between: it is damaged;"
                    " begin with an empty directory, or with a copy from before"
                )
            topic = TopicImage(record.name, record.topic_id)
            topic.overrides = self._early_overrides.pop(record.name, {})
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
            self.producer_ids_end = max(self.producer_ids_end, record.next_producer_id)
        elif isinstance(record, FeatureLevelRecord):
            self.features[record.name] = record.feature_level
            if not record.feature_level and record.name not in ON_UNLESS_NAMED:
                del self.features[record.name]
        elif isinstance(record, ClearElrRecord):
            self._clear_eligible(record)
        elif record.API_KEY in SECURITY_RECORDS:
            self.security.apply(record)

    def _apply_partition(self, record: PartitionRecord) -> None:
        topic = self.topics_by_id.get(record.topic_id)
        if topic is None or record.partition_id != len(topic.partitions):
            return
        assigned, in_sync = tuple(record.replicas), tuple(record.isr)
        moving = tuple(record.adding_replicas), tuple(record.removing_replicas)
        eligible = tuple(record.eligible_leader_replicas or ()), tuple(record.last_known_elr or ())
        replicas = self._shared(Replicas(assigned, in_sync, *moving, *eligible))
        leader, epochs = record.leader, (record.leader_epoch, record.partition_epoch)
        topic.partitions.append(PartitionImage(topic.id, record.partition_id, replicas, leader, *epochs))

    def _apply_partition_change(self, record: PartitionChangeRecord) -> None:
        """Apply a change of a partition.

        A change that names a leader, new or not, begins a new leader epoch.
        """
        topic = self.topics_by_id.get(record.topic_id)
        if topic is None or record.partition_id >= len(topic.partitions):
            return
        partition = topic.partitions[record.partition_id]
        assigned, in_sync, adding, removing, eligible, last_known = partition.replicas
        if record.replicas is not None:
            assigned = tuple(record.replicas)
        if record.isr is not None:
            in_sync = tuple(record.isr)
        if record.adding_replicas is not None:
            adding = tuple(record.adding_replicas)
        if record.removing_replicas is not None:
            removing = tuple(record.removing_replicas)
        if record.eligible_leader_replicas is not None:
            eligible = tuple(record.eligible_leader_replicas)
        if record.last_known_elr is not None:
            last_known = tuple(record.last_known_elr)
        partition.replicas = self._shared(Replicas(assigned, in_sync, adding, removing, eligible, last_known))
        partition.epoch += 1
        if record.leader != _SAME_LEADER:
            partition.leader_epoch += 1
            partition.leader = record.leader

    def _clear_eligible(self, record: ClearElrRecord) -> None:
        """Clear the eligible leader replicas of the topic in a record, or of all topics if it names none."""
        names = [record.topic_name] if record.topic_name else list(self.topics)
        for topic in (self.topics[name] for name in names if name in self.topics):
            for partition in topic.partitions:
                bare = partition.replicas._replace(eligible=(), last_known=())
                partition.replicas = self._shared(bare)

    def _shared(self, replicas: Replicas) -> Replicas:
        return self._replicas.setdefault(replicas, replicas)

    def _apply_config(self, record: ConfigRecord) -> None:
        if record.resource_type == TOPIC_RESOURCE:
            topic = self.topics.get(record.resource_name)
            if topic is None:
                _put(self._early_overrides.setdefault(record.resource_name, {}), record)
            else:
                overrides = dict(topic.overrides)
                _put(overrides, record)
                topic.overrides = overrides
        elif record.resource_type == BROKER_RESOURCE:
            _put(self.broker_configs.setdefault(record.resource_name, {}), record)
        else:
            resource = record.resource_type, record.resource_name
            texts = self.resource_configs.setdefault(resource, {})
            _put(texts, record)
            if not texts:
                del self.resource_configs[resource]

    def _apply_quota(self, record: ClientQuotaRecord) -> None:
        entity = entity_of({part.entity_type: part.entity_name for part in record.entity})
        values = self.quotas.setdefault(entity, {})
        if record.remove:
            values.pop(record.key, None)
        else:
            values[record.key] = record.value
        if not values:
            del self.quotas[entity]


def _unfit(what: str) -> StorageError:
    return StorageError(f"the metadata log does not take {what}: it was decided against other metadata")


def _put(texts: dict[str, str], record: ConfigRecord) -> None:
    if record.value is None:
        texts.pop(record.name, None)
    else:
        texts[record.name] = record.value


def folded(name: str) -> str:
    """Return a topic's name with underscores for dots: equal results collide in Kafka's metric names."""
    return name.replace(".", "_")
