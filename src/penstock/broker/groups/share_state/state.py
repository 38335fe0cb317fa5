"""The state of one share partition, and the changes to it.

Only `ShareStates.apply` changes a state: with changes that a request has caused, once they are stored, and
with changes that are read from `__share_group_state`.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from penstock.broker.groups.share_state.batches import KEEPS_START, StateBatch, combine
from penstock.broker.groups.share_state.keys import ShareKey

NO_START = -1
"""The start offset of a share partition from which no records have been fetched yet: -1."""

NO_COUNT = -1
"""The value of `SharePartitionState.complete_count` if the number is unknown: -1."""

STATE_BYTES = 700
"""The approximate memory of a share partition in bytes, without the group's name and the batches."""

BATCH_BYTES = 120
"""The approximate memory of a range of records in bytes."""


class SharePartitionState(NamedTuple):
    """The persistent state of a share partition: its epochs, start offset and delivery states.

    `created_ms` is the wall-clock time at which the state was initialized; `written_ms` is the time of its
    last snapshot.
    """

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    complete_count: int
    """The number of records after the start offset that need no further delivery; -1 if it is unknown."""
    created_ms: int
    written_ms: int
    batches: tuple[StateBatch, ...] = ()

    @property
    def size_bytes(self) -> int:
        """Return the approximate memory that the state uses, without its key."""
        return STATE_BYTES + BATCH_BYTES * len(self.batches)


class Update(NamedTuple):
    """The changes of a share partition's state in one ShareUpdate record.

    `snapshot_epoch` is that of the snapshot which the record updates. A start offset of -1 means
    unchanged.
    """

    snapshot_epoch: int
    leader_epoch: int
    start_offset: int
    complete_count: int
    batches: tuple[StateBatch, ...] = ()


class ShareStateChange(NamedTuple):
    """The content of one record: a whole state, an update of it, or None for its removal."""

    key: ShareKey
    value: SharePartitionState | Update | None


Stored: TypeAlias = tuple[ShareStateChange, int]
"""A change that was read from the log, and the log offset of its record."""


class StoredShareState:
    """The state of one share partition at its coordinator, and the log offset of its snapshot."""

    __slots__ = ("leader_epoch", "snapshot_offset", "state", "state_epoch", "updates")

    def __init__(self, state: SharePartitionState) -> None:
        self.state = state
        self.updates = 0
        """The number of updates since the last snapshot."""
        self.leader_epoch = state.leader_epoch
        """The highest leader epoch that was ever stored. Leaders with a lower epoch are fenced."""
        self.state_epoch = state.state_epoch
        """The highest state epoch that was ever stored."""
        self.snapshot_offset = 0
        """The log offset of the last snapshot. Records before it are not needed.

        If the log has an update of this state but no snapshot, it is the offset of that update.
        """


class ShareStates:
    """The states of the share partitions in one partition of `__share_group_state`."""

    def __init__(self) -> None:
        self.entries: dict[ShareKey, StoredShareState] = {}
        self.size_bytes = 0
        """The approximate memory of all states in bytes."""

    def apply(self, change: ShareStateChange, offset: int) -> None:
        """Apply a change whose record is at this log offset."""
        key, value = change
        entry = self.entries.get(key)
        if entry is not None:
            self.size_bytes -= entry.state.size_bytes
        elif value is not None:
            self.size_bytes += len(key.group_id)
        if value is None:
            if self.entries.pop(key, None) is not None:
                self.size_bytes -= len(key.group_id)
            return
        if entry is None:
            # An update comes first where Apache Kafka has deleted the snapshot before it.
            entry = self.entries[key] = StoredShareState(_begun(value))
            entry.snapshot_offset = offset
        elif isinstance(value, SharePartitionState):
            entry.state, entry.updates, entry.snapshot_offset = value, 0, offset
            entry.state_epoch = max(entry.state_epoch, value.state_epoch)
        else:
            entry.state = updated(entry.state, value)
            entry.updates += 1
        entry.leader_epoch = max(entry.leader_epoch, value.leader_epoch)
        self.size_bytes += entry.state.size_bytes


def _begun(value: SharePartitionState | Update) -> SharePartitionState:
    if isinstance(value, SharePartitionState):
        return value
    return SharePartitionState(
        value.snapshot_epoch,
        0,
        value.leader_epoch,
        value.start_offset,
        value.complete_count,
        0,
        0,
        combine((), value.batches, value.start_offset),
    )


def updated(state: SharePartitionState, update: Update) -> SharePartitionState:
    """Return a state with an update applied."""
    start_offset = state.start_offset if update.start_offset == KEEPS_START else update.start_offset
    return state._replace(
        leader_epoch=state.leader_epoch if update.leader_epoch == -1 else update.leader_epoch,
        start_offset=start_offset,
        complete_count=update.complete_count,
        batches=combine(state.batches, update.batches, start_offset),
    )
