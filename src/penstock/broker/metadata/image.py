"""`ClusterImage`: the state of a cluster that its metadata records describe.

The image has topics with their ids and settings, partitions with their leaders and replicas, registrations,
settings of brokers, groups and metrics subscriptions, quotas, features, users and rights, and the producer
ids that were reserved. Only `ClusterImage.apply` changes it, so that the same records always make the same
image.

What a type of record does to the state is decided here alone, in `_EFFECTS`. A running broker, the check of a
directory before it is taken over, and the writer of snapshots all read the log into a `ClusterImage`;
`ClusterImage.records` converts it back to records. One broker's part of the state (logs, directories, typed
settings) is in `penstock.broker.metadata.replica_manager`. Records: KIP-631, KIP-858, KIP-966.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.broker.metadata.brokers import BrokerStates
from penstock.broker.metadata.metadata_log import DIRECTORIES_SINCE, ELIGIBLE_REPLICAS_SINCE
from penstock.broker.quota_entities import Entity, entity_of
from penstock.errors import StorageError
from penstock.protocol.field_values import BROKER_RESOURCE, TOPIC_RESOURCE
from penstock.protocol.messages.config_record import ConfigRecord
from penstock.protocol.messages.feature_level_record import FeatureLevelRecord
from penstock.protocol.messages.partition_change_record import PartitionChangeRecord
from penstock.protocol.messages.partition_record import PartitionRecord
from penstock.protocol.messages.producer_ids_record import ProducerIdsRecord
from penstock.protocol.messages.remove_topic_record import RemoveTopicRecord
from penstock.protocol.messages.topic_record import TopicRecord
from penstock.protocol.uuid import ZERO_UUID

if TYPE_CHECKING:
    from penstock.broker.security.image import SecurityImage
    from penstock.protocol.message import Message
    from penstock.protocol.messages.clear_elr_record import ClearElrRecord
    from penstock.protocol.messages.client_quota_record import ClientQuotaRecord
    from penstock.protocol.messages.register_controller_record import RegisterControllerRecord

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
"""The level of `eligible.leader.replicas.version` that enables eligible leader replicas (KIP-966).

As in Kafka 4.0, the feature is off in new clusters.
"""

GROUP_FEATURE = "group.version"

GROUP_VERSION = 1
"""The level of `group.version` with the consumer groups of KIP-848, with which new clusters begin."""

SHARE_FEATURE = "share.version"

SHARE_VERSION = 2
"""The level of `share.version` with share groups (KIP-932) and their dead letter queues (KIP-1191). A cluster
whose metadata do not contain the feature has both, too: Apache Kafka 4.0 and 4.1 do not start if metadata
contain it. Level 1 has no dead letter queues."""

DEAD_LETTERS_LEVEL = 2
"""The first level of `share.version` with dead letter queues."""

STREAMS_FEATURE = "streams.version"

STREAMS_VERSION = 1
"""The level of `streams.version` with streams groups (KIP-1071). A cluster whose metadata do not contain the
feature has streams groups, too."""

KRAFT_FEATURE = "kraft.version"

KRAFT_VERSION = 1
"""The level of `kraft.version` with dynamic voters (KIP-853). Data directories of this level are
accepted.

ApiVersions reports level 0, and clients cannot change it, because the only voter never changes.
"""

ON_UNLESS_NAMED = {SHARE_FEATURE: SHARE_VERSION, STREAMS_FEATURE: STREAMS_VERSION}
"""A dict from feature to level for the features that are on, at this level, in a cluster whose metadata
do not contain them. To switch one off, level 0 is stored.
"""

OTHER_FEATURES = {
    TRANSACTION_FEATURE: TRANSACTION_VERSION,
    ELR_FEATURE: ELR_VERSION,
    GROUP_FEATURE: GROUP_VERSION,
    **ON_UNLESS_NAMED,
}
"""A dict from feature to its highest level, for the features besides `metadata.version` that clients may set.
"""

FIRST_FEATURES = {
    METADATA_FEATURE: METADATA_VERSION,
    TRANSACTION_FEATURE: TRANSACTION_VERSION,
    GROUP_FEATURE: GROUP_VERSION,
}
"""The feature levels of new clusters, unless a setting chooses others. All releases 4.x of Apache Kafka
support these levels.
"""


def metadata_level(features: Mapping[str, int]) -> int:
    """Return the level of `metadata.version` in `features`, or the level of new clusters if it has none."""
    return features.get(METADATA_FEATURE, METADATA_VERSION)


def share_level(features: Mapping[str, int]) -> int:
    """Return the finalized level of `share.version`, or the highest supported one if none is set."""
    return features.get(SHARE_FEATURE, SHARE_VERSION)


def streams_level(features: Mapping[str, int]) -> int:
    """Return the finalized level of `streams.version`, or the highest supported one if none is set."""
    return features.get(STREAMS_FEATURE, STREAMS_VERSION)


_SAME_LEADER = -2
"""The value -2 of `leader` in a PartitionChangeRecord: the leader stays unchanged."""


class Replicas(NamedTuple):
    """The ids of the brokers with a partition's replicas. A reassignment fills `adding` and `removing`."""

    assigned: tuple[int, ...]
    in_sync: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    eligible: tuple[int, ...] = ()
    """The eligible leader replicas: not in the ISR, but they have all committed records and may lead
    (KIP-966).
    """
    last_known: tuple[int, ...] = ()
    """The id of the last leader, if the partition has no leader and its ISR is empty; otherwise empty."""
    directories: tuple[bytes, ...] = ()
    """The id of the directory of each assigned replica; empty if the records have none (KIP-858)."""


class PartitionImage:
    """A partition's metadata: leader, leader epoch and replicas. `leader` is -1 if it has no leader."""

    __slots__ = ("epoch", "index", "leader", "leader_epoch", "recovery", "replicas", "topic_id")

    def __init__(self, record: PartitionRecord, replicas: Replicas) -> None:
        self.topic_id = record.topic_id
        self.index = record.partition_id
        self.replicas = replicas
        self.leader = record.leader
        self.leader_epoch = record.leader_epoch
        self.epoch = record.partition_epoch
        """The partition epoch, which increases with every change of the partition's metadata."""
        self.recovery = record.leader_recovery_state
        """The leader recovery state: 1 from an unclean election until the leader has recovered, else 0."""

    def record(self, level: int) -> PartitionRecord:
        """Return a PartitionRecord with this state, for a `metadata.version` level."""
        assigned, in_sync, adding, removing, eligible, last_known, directories = self.replicas
        has_elr = level >= ELIGIBLE_REPLICAS_SINCE and bool(eligible or last_known)
        return PartitionRecord(
            partition_id=self.index,
            topic_id=self.topic_id,
            replicas=list(assigned),
            isr=list(in_sync),
            removing_replicas=list(removing),
            adding_replicas=list(adding),
            leader=self.leader,
            leader_recovery_state=self.recovery,
            leader_epoch=self.leader_epoch,
            partition_epoch=self.epoch,
            directories=list(directories) if level >= DIRECTORIES_SINCE else None,
            eligible_leader_replicas=list(eligible) if has_elr else None,
            last_known_elr=list(last_known) if has_elr else None,
        )


class TopicImage:
    """A topic's metadata. `partitions` are ordered by index; `overrides` has the topic's own settings."""

    __slots__ = ("id", "name", "overrides", "partitions")

    def __init__(self, name: str, topic_id: bytes) -> None:
        self.name = name
        self.id = topic_id
        self.overrides: dict[str, str] = {}
        self.partitions: list[PartitionImage] = []


class ClusterImage:
    """The state that the metadata records of a cluster describe."""

    def __init__(self) -> None:
        self.topics: dict[str, TopicImage] = {}
        self.topics_by_id: dict[bytes, TopicImage] = {}
        self.folded_names: dict[str, str] = {}
        """A dict from a topic's name with underscores instead of dots to the original name, to find
        names that collide in metrics.
        """
        self.broker_configs: dict[str, dict[str, str]] = {}
        """A dict from node id (in decimal, or `ALL_BROKERS`) to that broker's dynamic settings."""
        self.resource_configs: dict[tuple[int, str], dict[str, str]] = {}
        """The settings of groups and of metrics subscriptions: a dict from (resource type, name) to
        settings.
        """
        self.quotas: dict[Entity, dict[str, float]] = {}
        """Quotas of clients, by entity and name of the quota."""
        self.features: dict[str, int] = {}
        """A dict from the name of each finalized feature to its level."""
        self.brokers = BrokerStates()
        """The brokers that have registered."""
        self.controllers: dict[int, RegisterControllerRecord] = {}
        """The registered controllers by node id. Only a metadata log of Apache Kafka contains any."""
        self.producer_ids_end = 0
        """The lowest producer id that no broker has reserved yet."""
        self._early_overrides: dict[str, dict[str, str]] = {}
        """Topic settings whose records precede the topic's own record, as Kafka before 3.9 writes them."""
        self._security: SecurityImage | None = None
        self._replicas: dict[Replicas, Replicas] = {}
        """The distinct `Replicas` objects, since partitions with equal replicas share one object."""

    @property
    def security(self) -> SecurityImage:
        """The ACL entries, SCRAM credentials and delegation tokens of the cluster."""
        if self._security is None:
            from penstock.broker.security.image import SecurityImage  # few clusters have any

            self._security = SecurityImage()
        return self._security

    @property
    def has_security(self) -> bool:
        """True if the metadata have ever contained ACL entries, SCRAM credentials or delegation tokens."""
        return self._security is not None

    def check(self, records: Sequence[Message]) -> None:
        """Check that records fit the image before they are written.

        Raises:
            StorageError: a topic's name or id exists already, a new partition does not have the next index, a
            changed
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
            StorageError: the record would replace a topic by another one with the same name, or its partition
                is not the next one of its topic.
        """
        effect = _EFFECTS.get(record.API_KEY)
        if effect is not None:
            effect(self, record)

    # --- topics ------------------------------------------------------------------------------------------

    def _topic(self, record: TopicRecord) -> None:
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

    def _remove_topic(self, record: RemoveTopicRecord) -> None:
        removed = self.topics_by_id.pop(record.topic_id, None)
        if removed is not None:
            del self.topics[removed.name]
            self.folded_names.pop(folded(removed.name), None)

    def _partition(self, record: PartitionRecord) -> None:
        topic = self.topics_by_id.get(record.topic_id)
        if topic is None:
            return
        index, count = record.partition_id, len(topic.partitions)
        if index > count:
            raise StorageError(
                f"the metadata log makes partition {index} of topic {topic.name}, which has {count}: it is"
                " damaged; begin with an empty directory, or with a copy from before"
            )
        replicas = Replicas(
            tuple(record.replicas),
            tuple(record.isr),
            tuple(record.adding_replicas),
            tuple(record.removing_replicas),
            tuple(record.eligible_leader_replicas or ()),
            tuple(record.last_known_elr or ()),
            tuple(record.directories),
        )
        topic.partitions[index : index + 1] = [PartitionImage(record, self._shared(replicas))]

    def _partition_change(self, record: PartitionChangeRecord) -> None:
        """Apply a change of a partition.

        A change with a leader, even the present one, begins a new leader epoch.
        """
        topic = self.topics_by_id.get(record.topic_id)
        if topic is None or record.partition_id >= len(topic.partitions):
            return
        partition = topic.partitions[record.partition_id]
        assigned, in_sync, adding, removing, eligible, last_known, directories = partition.replicas
        if record.replicas is not None:
            # A broker that gets a replica has not chosen a directory for it yet.
            homes = dict(zip(assigned, directories, strict=False))
            assigned = tuple(record.replicas)
            directories = tuple(homes.get(each, ZERO_UUID) for each in assigned) if homes else ()
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
        if record.directories is not None:
            directories = tuple(record.directories)
        partition.replicas = self._shared(
            Replicas(assigned, in_sync, adding, removing, eligible, last_known, directories)
        )
        partition.epoch += 1
        if record.leader != _SAME_LEADER:
            partition.leader_epoch += 1
            partition.leader = record.leader
        if record.leader_recovery_state >= 0:
            partition.recovery = record.leader_recovery_state

    def _clear_eligible(self, record: ClearElrRecord) -> None:
        """Clear the eligible leader replicas of the topic in a record, or of all topics if it names none."""
        names = [record.topic_name] if record.topic_name else list(self.topics)
        for topic in (self.topics[name] for name in names if name in self.topics):
            for partition in topic.partitions:
                bare = partition.replicas._replace(eligible=(), last_known=())
                partition.replicas = self._shared(bare)

    def _shared(self, replicas: Replicas) -> Replicas:
        return self._replicas.setdefault(replicas, replicas)

    # --- the rest ----------------------------------------------------------------------------------------

    def _config(self, record: ConfigRecord) -> None:
        name = record.resource_name
        if record.resource_type == TOPIC_RESOURCE:
            topic = self.topics.get(name)
            texts = self._early_overrides.setdefault(name, {}) if topic is None else topic.overrides
        elif record.resource_type == BROKER_RESOURCE:
            texts = self.broker_configs.setdefault(name, {})
        else:
            texts = self.resource_configs.setdefault((record.resource_type, name), {})
        if record.value is None:
            texts.pop(record.name, None)
        else:
            texts[record.name] = record.value
        if not texts:
            self.resource_configs.pop((record.resource_type, name), None)

    def _quota(self, record: ClientQuotaRecord) -> None:
        entity = entity_of({part.entity_type: part.entity_name for part in record.entity})
        values = self.quotas.setdefault(entity, {})
        if record.remove:
            values.pop(record.key, None)
        else:
            values[record.key] = record.value
        if not values:
            del self.quotas[entity]

    def _feature(self, record: FeatureLevelRecord) -> None:
        self.features[record.name] = record.feature_level
        if not record.feature_level and record.name not in ON_UNLESS_NAMED:
            del self.features[record.name]

    def _producer_ids(self, record: ProducerIdsRecord) -> None:
        self.producer_ids_end = max(self.producer_ids_end, record.next_producer_id)

    # --- the way back ------------------------------------------------------------------------------------

    def records(self) -> Iterator[Message]:
        """Yield the smallest list of records that describes this image, for its `metadata.version` level.

        The order is that of Apache Kafka's `ImageWriter`: features first, beginning with `metadata.version`.
        """
        level = metadata_level(self.features)
        for name in sorted(self.features, key=lambda name: (name != METADATA_FEATURE, name)):
            yield FeatureLevelRecord(name=name, feature_level=self.features[name])
        for broker in self.brokers.by_id.values():
            yield broker.record(level)
        yield from self.controllers.values()
        for topic in self.topics.values():
            yield TopicRecord(name=topic.name, topic_id=topic.id)
            for partition in topic.partitions:
                yield partition.record(level)
        for (kind, resource), texts in self._settings():
            for name, text in texts.items():
                yield ConfigRecord(resource_type=kind, resource_name=resource, name=name, value=text)
        if self.quotas:
            from penstock.protocol.messages.client_quota_record import ClientQuotaRecord, EntityData

            for entity, values in self.quotas.items():
                parts = [EntityData(entity_type=kind, entity_name=each) for kind, each in entity]
                for name, value in values.items():
                    yield ClientQuotaRecord(entity=parts, key=name, value=value)
        if self.producer_ids_end:
            yield ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=self.producer_ids_end)
        if self.has_security:
            yield from self.security.records()

    def _settings(self) -> Iterator[tuple[tuple[int, str], Mapping[str, str]]]:
        for topic in self.topics.values():
            yield (TOPIC_RESOURCE, topic.name), topic.overrides
        for name, texts in self._early_overrides.items():
            yield (TOPIC_RESOURCE, name), texts
        for name, texts in self.broker_configs.items():
            yield (BROKER_RESOURCE, name), texts
        yield from self.resource_configs.items()


_EFFECTS: dict[int | None, Callable[[ClusterImage, Any], object]] = {
    0: lambda image, record: image.brokers.register(record),
    1: lambda image, record: image.brokers.unregister(record.broker_id, record.broker_epoch),
    2: ClusterImage._topic,
    3: ClusterImage._partition,
    4: ClusterImage._config,
    5: ClusterImage._partition_change,
    7: lambda image, record: image.brokers.fence(record.id, record.epoch, fenced=True),
    8: lambda image, record: image.brokers.fence(record.id, record.epoch, fenced=False),
    9: ClusterImage._remove_topic,
    10: lambda image, record: image.security.add_token(record),
    11: lambda image, record: image.security.add_credential(record),
    12: ClusterImage._feature,
    14: ClusterImage._quota,
    15: ClusterImage._producer_ids,
    17: lambda image, record: image.brokers.change(record),
    18: lambda image, record: image.security.add_acl(record),
    19: lambda image, record: image.security.remove_acl(record.id),
    22: lambda image, record: image.security.remove_credential(record.name, record.mechanism),
    26: lambda image, record: image.security.remove_token(record.token_id),
    27: lambda image, record: image.controllers.__setitem__(record.controller_id, record),
    28: ClusterImage._clear_eligible,
    29: lambda image, record: image.controllers.pop(record.controller_id, None),
}
"""A dict from record type to the function that applies such a record to a `ClusterImage`."""


def _unfit(what: str) -> StorageError:
    return StorageError(f"the metadata log does not take {what}: it was decided against other metadata")


def folded(name: str) -> str:
    """Return a topic's name with underscores instead of dots, as in metric names, to find collisions."""
    return name.replace(".", "_")
