"""Reduces metadata records to the fewest with the same meaning, for a snapshot.

The result has all that the records contain, also what this broker does not use: registrations, partition
epochs, eligible leader replicas. The order is that of Kafka's `ImageWriter`: features first, beginning with
`metadata.version`. Levels: KIP-584, KIP-778; records: KIP-631, KIP-858, KIP-966.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from penstock.broker.metadata.image import ON_UNLESS_NAMED
from penstock.broker.metadata.metadata_log import (
    DIRECTORIES_SINCE,
    ELIGIBLE_REPLICAS_SINCE,
    known_head,
)
from penstock.protocol import messages
from penstock.protocol.field_values import TOPIC_RESOURCE
from penstock.protocol.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from penstock.protocol.messages.client_quota_record import ClientQuotaRecord
from penstock.protocol.messages.config_record import ConfigRecord
from penstock.protocol.messages.feature_level_record import FeatureLevelRecord
from penstock.protocol.messages.partition_change_record import PartitionChangeRecord
from penstock.protocol.messages.partition_record import PartitionRecord
from penstock.protocol.messages.producer_ids_record import ProducerIdsRecord
from penstock.protocol.messages.register_broker_record import RegisterBrokerRecord

if TYPE_CHECKING:
    from penstock.protocol.message import Message

METADATA_FEATURE = "metadata.version"

CORDONED_SINCE = 30
"""4.3-IV0: the first level whose broker registrations have cordoned directories, without new partitions."""

SEGMENT_BYTES_MIN = 1_048_576
"""The minimum of `segment.bytes`: Apache Kafka 4.0 and later do not start if a topic has less (KIP-1030)."""

_SEGMENT_BYTES = "segment.bytes"
_NO_LEADER_CHANGE = -2

RECORD_NAMES = {
    0: "RegisterBrokerRecord",
    1: "UnregisterBrokerRecord",
    2: "TopicRecord",
    3: "PartitionRecord",
    4: "ConfigRecord",
    5: "PartitionChangeRecord",
    7: "FenceBrokerRecord",
    8: "UnfenceBrokerRecord",
    9: "RemoveTopicRecord",
    10: "DelegationTokenRecord",
    11: "UserScramCredentialRecord",
    12: "FeatureLevelRecord",
    14: "ClientQuotaRecord",
    15: "ProducerIdsRecord",
    17: "BrokerRegistrationChangeRecord",
    18: "AccessControlEntryRecord",
    19: "RemoveAccessControlEntryRecord",
    22: "RemoveUserScramCredentialRecord",
    23: "BeginTransactionRecord",
    24: "EndTransactionRecord",
    25: "AbortTransactionRecord",
    26: "RemoveDelegationTokenRecord",
    27: "RegisterControllerRecord",
    28: "ClearElrRecord",
    29: "UnregisterControllerRecord",
}
"""The names of the records that change the state, by type. NoOp (20) and ZkMigrationState (21) do not."""

_BEGIN, _END, _ABORT = 23, 24, 25


class FoldedMetadata:
    """The state after all metadata records that were applied, from which a snapshot is written."""

    def __init__(self) -> None:
        self.features: dict[str, int] = {}
        self._brokers: dict[int, RegisterBrokerRecord] = {}
        self._controllers: dict[int, Any] = {}
        self._topics: dict[bytes, str] = {}
        self._ids: dict[str, bytes] = {}
        self._partitions: dict[bytes, dict[int, PartitionRecord]] = {}
        self._configs: dict[tuple[int, str], dict[str, str]] = {}
        self._quotas: dict[tuple[tuple[tuple[str, str | None], ...], str], ClientQuotaRecord] = {}
        self._next_producer_id = 0
        self._rules: dict[bytes, Any] = {}
        self._credentials: dict[tuple[str, int], Any] = {}
        self._tokens: dict[str, Any] = {}
        self._pending: list[Message] | None = None
        self._apply_of: dict[int, Callable[[Any], None]] = {
            0: self._register,
            1: lambda record: _drop(self._brokers, record.broker_id),
            2: self._topic,
            3: self._partition,
            4: self._config,
            5: self._partition_change,
            7: lambda record: self._fence(record.id, True),
            8: lambda record: self._fence(record.id, False),
            9: self._remove_topic,
            10: lambda record: self._tokens.__setitem__(record.token_id, record),
            11: lambda record: self._credentials.__setitem__((record.name, record.mechanism), record),
            12: self._feature,
            14: self._quota,
            15: self._producer_ids,
            17: self._registration_change,
            18: lambda record: self._rules.__setitem__(record.id, record),
            19: lambda record: _drop(self._rules, record.id),
            22: lambda record: _drop(self._credentials, (record.name, record.mechanism)),
            26: lambda record: _drop(self._tokens, record.token_id),
            27: lambda record: self._controllers.__setitem__(record.controller_id, record),
            28: self._clear_eligible,
            29: lambda record: _drop(self._controllers, record.controller_id),
        }

    def apply(self, value: bytes) -> None:
        """Apply a framed record; those of a metadata transaction take effect when it ends (KIP-868).

        Raises:
            DecodeError: the record's type or version is unknown, or the record is damaged.
        """
        key, version, position = known_head(value)
        name = RECORD_NAMES.get(key)
        if name is None:
            return
        cls: type[Message] = getattr(messages, name)
        record = cls.decode(value[position:], version)
        if key == _BEGIN:
            self._pending = []
        elif key == _ABORT:
            self._pending = None
        elif key == _END:
            pending, self._pending = self._pending or [], None
            for each in pending:
                self._apply(each)
        elif self._pending is not None:
            self._pending.append(record)
        else:
            self._apply(record)

    def _apply(self, record: Message) -> None:
        assert record.API_KEY is not None
        self._apply_of[record.API_KEY](record)

    # --- brokers -----------------------------------------------------------------------------------------

    def _register(self, record: RegisterBrokerRecord) -> None:
        self._brokers[record.broker_id] = record

    def _fence(self, broker_id: int, fenced: bool) -> None:
        broker = self._brokers.get(broker_id)
        if broker is not None:
            broker.fenced = fenced

    def _registration_change(self, record: BrokerRegistrationChangeRecord) -> None:
        broker = self._brokers.get(record.broker_id)
        if broker is None:
            return
        if record.fenced:
            broker.fenced = record.fenced > 0
        if record.in_controlled_shutdown:
            broker.in_controlled_shutdown = record.in_controlled_shutdown > 0
        if record.log_dirs:
            broker.log_dirs = record.log_dirs
        if record.cordoned_log_dirs is not None:
            broker.cordoned_log_dirs = record.cordoned_log_dirs

    # --- topics ------------------------------------------------------------------------------------------

    def _topic(self, record: Any) -> None:
        self._topics[record.topic_id] = record.name
        self._ids[record.name] = record.topic_id
        self._partitions[record.topic_id] = {}

    def _remove_topic(self, record: Any) -> None:
        name = self._topics.pop(record.topic_id, None)
        self._partitions.pop(record.topic_id, None)
        if name is not None and self._ids.get(name) == record.topic_id:
            del self._ids[name]
            self._configs.pop((TOPIC_RESOURCE, name), None)

    def _partition(self, record: PartitionRecord) -> None:
        partitions = self._partitions.get(record.topic_id)
        if partitions is not None:
            partitions[record.partition_id] = record

    def _partition_change(self, change: PartitionChangeRecord) -> None:
        partition = self._partitions.get(change.topic_id, {}).get(change.partition_id)
        if partition is None:
            return
        partition.partition_epoch += 1
        if change.leader != _NO_LEADER_CHANGE:
            partition.leader = change.leader
            partition.leader_epoch += 1
        if change.leader_recovery_state >= 0:
            partition.leader_recovery_state = change.leader_recovery_state
        if change.replicas is not None:
            partition.replicas = change.replicas
        if change.isr is not None:
            partition.isr = change.isr
        if change.removing_replicas is not None:
            partition.removing_replicas = change.removing_replicas
        if change.adding_replicas is not None:
            partition.adding_replicas = change.adding_replicas
        if change.directories is not None:
            partition.directories = change.directories
        if change.eligible_leader_replicas is not None:
            partition.eligible_leader_replicas = change.eligible_leader_replicas
        if change.last_known_elr is not None:
            partition.last_known_elr = change.last_known_elr

    def _clear_eligible(self, record: Any) -> None:
        for topic_id, name in self._topics.items():
            if record.topic_name in ("", name):
                for partition in self._partitions[topic_id].values():
                    partition.eligible_leader_replicas = partition.last_known_elr = None

    # --- the rest ----------------------------------------------------------------------------------------

    def _config(self, record: ConfigRecord) -> None:
        resource = record.resource_type, record.resource_name
        texts = self._configs.setdefault(resource, {})
        if record.value is None:
            texts.pop(record.name, None)
        else:
            texts[record.name] = record.value
        if not texts:
            del self._configs[resource]

    def _feature(self, record: FeatureLevelRecord) -> None:
        if record.feature_level or record.name in ON_UNLESS_NAMED:
            self.features[record.name] = record.feature_level
        else:
            self.features.pop(record.name, None)

    def _quota(self, record: ClientQuotaRecord) -> None:
        entity = tuple((part.entity_type, part.entity_name) for part in record.entity)
        if record.remove:
            _drop(self._quotas, (entity, record.key))
        else:
            self._quotas[entity, record.key] = record

    def _producer_ids(self, record: ProducerIdsRecord) -> None:
        self._next_producer_id = max(self._next_producer_id, record.next_producer_id)

    @property
    def topics(self) -> list[str]:
        """The names of the topics, sorted."""
        return sorted(self._topics.values())

    @property
    def small_segments(self) -> list[str]:
        """The sorted names of the topics whose `segment.bytes` is below `SEGMENT_BYTES_MIN`."""
        return sorted(
            name
            for (kind, name), texts in self._configs.items()
            if kind == TOPIC_RESOURCE and _is_small(texts.get(_SEGMENT_BYTES, ""))
        )

    def broker_epoch(self, broker_id: int) -> int:
        """Return the epoch of a broker's registration, or -1 if it is not registered."""
        broker = self._brokers.get(broker_id)
        return -1 if broker is None else broker.broker_epoch

    # --- the fewest records ------------------------------------------------------------------------------

    def lower(self, level: int, known: Mapping[str, int]) -> None:
        """Lower `metadata.version` to `level`, and the other features to the levels of a release.

        `known` has the highest levels of the other features; features that are not in it are removed.
        Registrations are removed as well, since they contain removed features: every broker registers when it
        starts.
        """
        kept = {name: min(has, known[name]) for name, has in self.features.items() if known.get(name)}
        self.features = {METADATA_FEATURE: level, **kept}
        self._brokers.clear()
        self._controllers.clear()

    def raise_segments(self) -> None:
        """Raise `segment.bytes` of the topics in `small_segments` to the minimum of Apache Kafka 4.x."""
        for name in self.small_segments:
            self._configs[TOPIC_RESOURCE, name][_SEGMENT_BYTES] = str(SEGMENT_BYTES_MIN)

    def values(self) -> Iterator[bytes]:
        """Yield the framed records of a snapshot, in the versions that the level prescribes."""
        level = self.features.get(METADATA_FEATURE, 0)
        for record in self._records(level):
            assert record.API_KEY is not None
            version = _version(record.API_KEY, level)
            yield bytes((1, record.API_KEY, version)) + record.encode(version)

    def _records(self, level: int) -> Iterable[Message]:
        names = sorted(self.features, key=lambda name: (name != METADATA_FEATURE, name))
        yield from (FeatureLevelRecord(name=name, feature_level=self.features[name]) for name in names)
        for broker in self._brokers.values():
            if level < CORDONED_SINCE:
                broker.cordoned_log_dirs = None
            yield broker
        yield from self._controllers.values()
        for topic_id, name in self._topics.items():
            yield messages.TopicRecord(name=name, topic_id=topic_id)
            for partition in self._partitions[topic_id].values():
                if level < DIRECTORIES_SINCE:
                    partition.directories = []
                if level < ELIGIBLE_REPLICAS_SINCE:
                    partition.eligible_leader_replicas = partition.last_known_elr = None
                yield partition
        for (kind, resource), texts in self._configs.items():
            for name, text in texts.items():
                yield ConfigRecord(resource_type=kind, resource_name=resource, name=name, value=text)
        yield from self._quotas.values()
        if self._next_producer_id:
            yield ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=self._next_producer_id)
        for records in (self._rules, self._credentials, self._tokens):
            yield from records.values()


def _version(key: int, level: int) -> int:
    """Return the version of a snapshot's record that a `metadata.version` level prescribes."""
    if key == PartitionRecord.API_KEY:
        return 2 if level >= ELIGIBLE_REPLICAS_SINCE else int(level >= DIRECTORIES_SINCE)
    if key == RegisterBrokerRecord.API_KEY:
        return 4 if level >= CORDONED_SINCE else 3 if level >= DIRECTORIES_SINCE else 2 if level >= 8 else 1
    return 0


def _drop(table: dict[Any, Any], key: object) -> None:
    table.pop(key, None)


def _is_small(text: str) -> bool:
    """Return True if a `segment.bytes` is a number below `SEGMENT_BYTES_MIN`."""
    return len(text) <= len(str(SEGMENT_BYTES_MIN)) and text.isdecimal() and int(text) < SEGMENT_BYTES_MIN
