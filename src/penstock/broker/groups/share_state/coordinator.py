"""Checks the requests to the share coordinator for one share partition, and computes changes (KIP-932).

The methods are pure functions of the stored state of the partition: they return the change to be stored, or
raise the error to respond with. The order of checks, the errors and the changes follow Apache Kafka 4.4, or
4.3 if the broker behaves as an older release.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from penstock.broker.groups.share_state.batches import KEEPS_START, StateBatch, combine
from penstock.broker.groups.share_state.keys import ShareKey
from penstock.broker.groups.share_state.state import (
    NO_COUNT,
    NO_START,
    SharePartitionState,
    ShareStateChange,
    ShareStates,
    StoredShareState,
    Update,
)
from penstock.errors import KafkaError
from penstock.protocol.error_codes import ErrorCode, error_for

FIRST_LEADER_EPOCH = 0

ANY_EPOCH = -1
"""An epoch in a request, -1, that matches every stored epoch. Apache Kafka before 4.4 accepts it."""

NOTHING = SharePartitionState(0, 0, 0, NO_START, NO_COUNT, 0, 0)
"""The state that a response to ReadShareGroupStateSummary has for a share partition without a state."""

HasPartition = Callable[[bytes, int], bool]
"""A function that returns True if the topic with this id has a partition with this index."""


class WrittenShareState(NamedTuple):
    """The fields of a WriteShareGroupState for one share partition."""

    state_epoch: int
    leader_epoch: int
    start_offset: int
    complete_count: int
    batches: tuple[StateBatch, ...]


class ShareCoordinator:
    """Checks requests for share partitions, and computes the changes of their states.

    `updates_max` returns the most update records between two snapshots of a state. `has_partition` looks up a
    partition in the metadata. Without `needs_epochs`, as before Apache Kafka 4.4, a request may leave out its
    epochs (`ANY_EPOCH`).
    """

    def __init__(
        self, updates_max: Callable[[], int], has_partition: HasPartition, *, needs_epochs: bool = True
    ) -> None:
        self._updates_max = updates_max
        self._has_partition = has_partition
        self._needs_epochs = needs_epochs

    def initialize(
        self, states: ShareStates, key: ShareKey, state_epoch: int, start_offset: int, now_ms: int
    ) -> ShareStateChange:
        """Handle InitializeShareGroupState: return the change that creates or resets a state.

        Raises:
            KafkaError: INVALID_REQUEST (42), FENCED_STATE_EPOCH (124) or UNKNOWN_TOPIC_OR_PARTITION (3).
        """
        _check_number(key)
        self._check_epoch("state", state_epoch)
        entry = states.entries.get(key)
        if entry is not None and state_epoch < entry.state_epoch:
            raise _fenced_state(key, state_epoch, entry)
        self._check_topic(key)
        return ShareStateChange(
            key,
            SharePartitionState(
                0 if entry is None else entry.state.snapshot_epoch + 1,
                state_epoch,
                FIRST_LEADER_EPOCH,
                start_offset,
                NO_COUNT if start_offset == NO_START else 0,
                now_ms,
                now_ms,
            ),
        )

    def read(
        self, states: ShareStates, key: ShareKey, leader_epoch: int
    ) -> tuple[SharePartitionState, ShareStateChange | None]:
        """Handle ReadShareGroupState; return the state, and a change that fences earlier leaders, if any.

        Raises:
            KafkaError: INVALID_REQUEST (42), FENCED_LEADER_EPOCH (74) or UNKNOWN_TOPIC_OR_PARTITION (3).
        """
        _check_number(key)
        self._check_epoch("leader", leader_epoch)
        entry = _initialized(states, key, "Read")
        _check_leader(key, leader_epoch, entry)
        self._check_topic(key)
        state = entry.state
        if leader_epoch <= entry.leader_epoch:
            return state, None
        update = Update(state.snapshot_epoch, leader_epoch, state.start_offset, state.complete_count)
        return state, ShareStateChange(key, update)

    def write(
        self, states: ShareStates, key: ShareKey, written: WrittenShareState, now_ms: int
    ) -> ShareStateChange:
        """Handle WriteShareGroupState: merge new delivery states of records; return the change.

        The start offset never decreases. If a leader's write was stored, but answered with an error because
        the coordinator moved, the leader's next write has an earlier start offset. The states between the two
        offsets are no longer stored, so accepting it would make the next leader deliver those records again.
        Apache Kafka before 4.4 accepts it.

        Raises:
            KafkaError: INVALID_REQUEST (42), FENCED_LEADER_EPOCH (74), FENCED_STATE_EPOCH (124) or
                UNKNOWN_TOPIC_OR_PARTITION (3).
        """
        _check_number(key)
        self._check_epoch("leader", written.leader_epoch)
        self._check_epoch("state", written.state_epoch)
        entry = _initialized(states, key, "Write")
        _check_leader(key, written.leader_epoch, entry)
        if written.state_epoch != ANY_EPOCH and written.state_epoch < entry.state_epoch:
            raise _fenced_state(key, written.state_epoch, entry)
        self._check_topic(key)
        for batch in written.batches:
            if not 0 <= batch.first_offset <= batch.last_offset:
                raise error_for(
                    ErrorCode.INVALID_REQUEST,
                    f"a range of records from {batch.first_offset} to {batch.last_offset}",
                )
        state = entry.state
        start_offset, complete_count = self._progress(state, written)
        if entry.updates < self._updates_max():
            batches = combine((), written.batches, start_offset)
            epochs = state.snapshot_epoch, state.leader_epoch
            return ShareStateChange(key, Update(*epochs, start_offset, complete_count, batches))
        if start_offset == KEEPS_START:
            start_offset = state.start_offset
        return ShareStateChange(
            key,
            state._replace(
                snapshot_epoch=state.snapshot_epoch + 1,
                start_offset=start_offset,
                complete_count=complete_count,
                written_ms=now_ms,
                batches=combine(state.batches, written.batches, start_offset),
            ),
        )

    def _progress(self, state: SharePartitionState, written: WrittenShareState) -> tuple[int, int]:
        """Return the start offset after a write, and the number of later records that need no delivery."""
        start_offset, complete_count = written.start_offset, written.complete_count
        if start_offset < state.start_offset and (self._needs_epochs or start_offset != KEEPS_START):
            return state.start_offset, state.complete_count
        if start_offset == state.start_offset and self._needs_epochs:
            complete_count = max(complete_count, state.complete_count)
        return start_offset, complete_count

    def delete(self, states: ShareStates, key: ShareKey) -> ShareStateChange | None:
        """Handle DeleteShareGroupState; return the change that removes the state, or None if there is none.

        Raises:
            KafkaError: INVALID_REQUEST (42) or UNKNOWN_TOPIC_OR_PARTITION (3).
        """
        _check_number(key)
        self._check_topic(key)
        return ShareStateChange(key, None) if key in states.entries else None

    def summary(self, states: ShareStates, key: ShareKey) -> SharePartitionState:
        """Handle ReadShareGroupStateSummary; return the state, or `NOTHING` if there is none.

        Raises:
            KafkaError: INVALID_REQUEST (42) or UNKNOWN_TOPIC_OR_PARTITION (3).
        """
        _check_number(key)
        self._check_topic(key)
        entry = states.entries.get(key)
        return NOTHING if entry is None else entry.state

    def _check_epoch(self, kind: str, epoch: int) -> None:
        if self._needs_epochs and epoch < 0:
            raise error_for(ErrorCode.INVALID_REQUEST, f"The {kind} epoch cannot be a negative number.")

    def _check_topic(self, key: ShareKey) -> None:
        if not self._has_partition(key.topic_id, key.partition):
            raise error_for(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {key.text.partition(':')[2]}"
            )


def cold_snapshots(states: ShareStates, interval_ms: int, now_ms: int) -> list[ShareStateChange]:
    """Return new snapshots of the share partitions whose last snapshot is older than `interval_ms`.

    After a new snapshot, older records of the log can be deleted. The result is empty if all share partitions
    have such old snapshots: no state is being written, so no log record needs to be deleted.
    """
    old = {
        key: entry.state
        for key, entry in states.entries.items()
        if now_ms - entry.state.written_ms >= interval_ms
    }
    if len(old) == len(states.entries):
        return []
    return [
        ShareStateChange(key, state._replace(snapshot_epoch=state.snapshot_epoch + 1, written_ms=now_ms))
        for key, state in old.items()
    ]


def orphans(states: ShareStates, has_topic: Callable[[bytes], bool]) -> Iterator[ShareStateChange]:
    """Yield the changes that remove the states of share partitions whose topic has been deleted."""
    for key in states.entries:
        if not has_topic(key.topic_id):
            yield ShareStateChange(key, None)


def first_needed(all_states: Iterable[StoredShareState]) -> int | None:
    """Return the offset of the first log record that is still needed, or None if there is no state."""
    return min((entry.snapshot_offset for entry in all_states), default=None)


def _check_number(key: ShareKey) -> None:
    if key.partition < 0:
        raise error_for(ErrorCode.INVALID_REQUEST, "The partition id cannot be a negative number.")


def _initialized(states: ShareStates, key: ShareKey, word: str) -> StoredShareState:
    entry = states.entries.get(key)
    if entry is None:
        raise error_for(
            ErrorCode.INVALID_REQUEST,
            f"{word} operation on uninitialized share partition {key.text} not allowed.",
        )
    return entry


def _check_leader(key: ShareKey, leader_epoch: int, entry: StoredShareState) -> None:
    if leader_epoch != ANY_EPOCH and leader_epoch < entry.leader_epoch:
        raise error_for(
            ErrorCode.FENCED_LEADER_EPOCH,
            f"the leader of {key.text} had epoch {entry.leader_epoch}, which is newer than {leader_epoch}",
        )


def _fenced_state(key: ShareKey, state_epoch: int, entry: StoredShareState) -> KafkaError:
    return error_for(
        ErrorCode.FENCED_STATE_EPOCH,
        f"the state of {key.text} has epoch {entry.state_epoch}, which is newer than {state_epoch}",
    )
