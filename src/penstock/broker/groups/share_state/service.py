"""The share coordinator of a broker: connects `coordinator` to the topic, the settings and the clock.

A node coordinates the share partitions whose states are in the partitions of `__share_group_state` that it
leads. Such a partition is read when it is first needed. Every call completes at once; in a cluster, a
response is sent only after the in-sync replicas have the stored records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from penstock.broker.coordination.loaded import LoadedPartitions
from penstock.broker.coordination.state_topic import Logs, StateTopic
from penstock.broker.coordination.storing import store_records
from penstock.broker.groups.share_state.coordinator import (
    ShareCoordinator,
    WrittenShareState,
    cold_snapshots,
    first_needed,
    orphans,
)
from penstock.broker.groups.share_state.records import LAYOUT, read_change, record_of
from penstock.broker.groups.share_state.state import (
    BATCH_BYTES,
    STATE_BYTES,
    SharePartitionState,
    ShareStateChange,
    ShareStates,
)
from penstock.broker.partitions.internal_topics import SHARE_STATE_TOPIC
from penstock.common.logs import logger_named
from penstock.errors import KafkaError, StorageError
from penstock.protocol.error_codes import ErrorCode, error_for

if TYPE_CHECKING:
    from penstock.broker.config.values import BrokerConfig
    from penstock.broker.coordination.losses import Losses
    from penstock.broker.groups.share_state.keys import ShareKey
    from penstock.broker.metadata.cluster import ClusterState
    from penstock.broker.requests.kept_state import KeptState
    from penstock.broker.requests.purgatory import Purgatory
    from penstock.clock import Clock
    from penstock.common.failures import Failures

logger = logger_named("penstock.broker")

CHANGES_AT_ONCE = 500
"""The most records that `maintain` puts into one batch."""


class ShareStateHost(Protocol):
    """The parts of the broker that the share coordinator needs."""

    config: BrokerConfig
    cluster: ClusterState
    clock: Clock
    purgatory: Purgatory
    failures: Failures
    kept: KeptState

    @property
    def store(self) -> Logs: ...


class ShareStateOutcome(NamedTuple):
    """The result of a request for one share partition: an error, or success and the state read."""

    code: int = ErrorCode.NONE
    message: str | None = None
    state: SharePartitionState | None = None


class ShareStateService:
    """The states of the share partitions that one broker coordinates."""

    def __init__(self, host: ShareStateHost) -> None:
        self._host = host
        self.topic = StateTopic(LAYOUT, host.cluster, host.store, host.purgatory.notify)
        self.loaded = LoadedPartitions(self.topic, self._read, "states of share groups")
        self.coordinator = ShareCoordinator(
            lambda: host.config.integer("share.coordinator.snapshot.update.records.per.snapshot"),
            self._has_partition,
            needs_epochs=host.config.behaves_since(4, 4),
        )
        host.kept.add("share states", lambda: sum(each.size_bytes for each in self.loaded.states))
        now = host.clock.monotonic()
        self._cold_s, self._prune_s = (
            host.config.integer(f"share.coordinator.{name}.interval.ms") / 1000
            for name in ("cold.partition.snapshot", "state.topic.prune")
        )
        self._cold_at, self._prune_at = now + self._cold_s, now + self._prune_s

    def _has_partition(self, topic_id: bytes, index: int) -> bool:
        topic = self._host.cluster.topics_by_id.get(topic_id)
        return topic is not None and index < len(topic.partitions)

    def create_topic(self, now_ms: int) -> None:
        """Create `__share_group_state`, if it does not exist.

        Raises:
            KafkaError, StorageError: the topic cannot be created now.
        """
        self.topic.create(now_ms)

    # --- reading -----------------------------------------------------------------------------------------

    def _open(self, key: ShareKey) -> tuple[int, ShareStates]:
        """Return the index of the partition of `__share_group_state` for a key, and all states in it.

        Raises:
            KafkaError: NOT_COORDINATOR (16), another node leads the partition, or the log cannot be read.
        """
        index = self.topic.partition_of(key.text)
        return index, self.loaded.open(index)

    def _read(self, index: int, losses: Losses) -> ShareStates:
        states = ShareStates()
        for change, offset in self.topic.replay(index, losses, read_change):
            states.apply(change, offset)
        return states

    def forget_everything(self) -> None:
        """Drop all states, because their topic has been deleted."""
        self.loaded.clear()

    # --- requests ----------------------------------------------------------------------------------------

    def initialize(self, key: ShareKey, state_epoch: int, start_offset: int) -> ShareStateOutcome:
        """Handle InitializeShareGroupState for one share partition."""
        now_ms = self._host.clock.now_ms()
        return self._change(
            key, lambda states: self.coordinator.initialize(states, key, state_epoch, start_offset, now_ms)
        )

    def write(self, key: ShareKey, written: WrittenShareState) -> ShareStateOutcome:
        """Handle WriteShareGroupState for one share partition."""
        now_ms = self._host.clock.now_ms()
        return self._change(key, lambda states: self.coordinator.write(states, key, written, now_ms))

    def delete(self, key: ShareKey) -> ShareStateOutcome:
        """Handle DeleteShareGroupState for one share partition."""
        return self._change(key, lambda states: self.coordinator.delete(states, key))

    def read(self, key: ShareKey, leader_epoch: int) -> ShareStateOutcome:
        """Handle ReadShareGroupState for one share partition."""

        def read(index: int, states: ShareStates) -> SharePartitionState:
            state, change = self.coordinator.read(states, key, leader_epoch)
            if change is not None:
                self._store(index, states, [change])
            return state

        return self._ask(key, read)

    def summary(self, key: ShareKey) -> ShareStateOutcome:
        """Handle ReadShareGroupStateSummary for one share partition."""
        return self._ask(key, lambda index, states: self.coordinator.summary(states, key))

    def _change(
        self, key: ShareKey, decide: Callable[[ShareStates], ShareStateChange | None]
    ) -> ShareStateOutcome:
        def change(index: int, states: ShareStates) -> None:
            decided = decide(states)
            if decided is not None:
                self._check_room(states, decided)
                self._store(index, states, [decided])

        return self._ask(key, change)

    def _ask(
        self, key: ShareKey, ask: Callable[[int, ShareStates], SharePartitionState | None]
    ) -> ShareStateOutcome:
        try:
            return ShareStateOutcome(state=ask(*self._open(key)))
        except KafkaError as error:
            return ShareStateOutcome(error.code, error.detail)

    def _check_room(self, states: ShareStates, change: ShareStateChange) -> None:
        if change.value is None:
            return
        entry = states.entries.get(change.key)
        size = len(change.value.batches) * BATCH_BYTES
        if entry is None:
            size += STATE_BYTES + len(change.key.group_id)
        if size and not self._host.kept.has_room_for(size, stays=True):
            raise error_for(
                ErrorCode.COORDINATOR_NOT_AVAILABLE, "the broker has no memory for states of share groups"
            )

    def _store(self, index: int, states: ShareStates, changes: Sequence[ShareStateChange]) -> None:
        """Write changes to the log, then apply them in memory.

        Raises:
            KafkaError: NOT_COORDINATOR (16) or UNKNOWN_SERVER_ERROR (-1), the changes could not be written;
                nothing has changed.
        """
        records = [record_of(change) for change in changes]
        what, now_ms = "the states of share groups", self._host.clock.now_ms()
        first = store_records(lambda: self.topic.append(index, records, now_ms, what), what)
        for number, change in enumerate(changes):
            states.apply(change, first + number)

    # --- maintenance -------------------------------------------------------------------------------------

    def forget_topics(self) -> None:
        """Remove the states of deleted topics from the partitions that have been read.

        Raises:
            KafkaError: the stored states cannot be removed.
        """
        has_topic = self._host.cluster.topics_by_id.__contains__
        self._store_all(lambda states: orphans(states, has_topic))

    def maintain(self, now_ms: int) -> list[StorageError]:
        """Write new snapshots for old ones, and delete unneeded log records, if their intervals have passed.

        `now_ms` is wall-clock time in milliseconds. Returns the exceptions that were raised.
        """
        now = self._host.clock.monotonic()
        failures: list[StorageError] = []
        try:
            if now >= self._cold_at:
                self._cold_at = now + self._cold_s
                interval_ms = round(self._cold_s * 1000)
                self.forget_topics()
                self._store_all(lambda states: cold_snapshots(states, interval_ms, now_ms))
            if now >= self._prune_at:
                self._prune_at = now + self._prune_s
                self._prune()
        except StorageError as error:
            failures.append(error)
        except KafkaError as error:
            logger.error("%s could not be maintained: %s", SHARE_STATE_TOPIC, error)
        return failures

    def _store_all(self, find: Callable[[ShareStates], Iterable[ShareStateChange]]) -> None:
        for index, states in self.loaded:
            changes = list(find(states))
            for start in range(0, len(changes), CHANGES_AT_ONCE):
                self._store(index, states, changes[start : start + CHANGES_AT_ONCE])

    def _prune(self) -> None:
        """Delete the log records before the oldest snapshot that is needed."""
        for index, states in self.loaded:
            partition = self.topic.partitions[index]
            needed = first_needed(states.entries.values())
            if needed is not None:
                needed = min(needed, partition.high_watermark)
                if needed > partition.reader.start_offset:
                    partition.delete_records(needed)
