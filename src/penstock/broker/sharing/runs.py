"""Runs of offsets in flight: consecutive offsets that share a state, a delivery count and an owner.

A `RunWindow` has the offsets that a share group has in flight in one partition, from the start offset to the
last offset that was delivered, without gaps. The window is a sorted list of runs. A run is split if a part of
it changes, and runs are joined again if they no longer differ. The module does not depend on the rules of
share groups.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from enum import IntEnum
from operator import attrgetter

from penstock.broker.coordination.timers import NEVER


class RecordState(IntEnum):
    """The delivery state of a record in a share group, with the numbers of Kafka's stored state."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    """The record is not delivered again; its dead letter is still to be written."""
    ARCHIVED = 4


AVAILABLE, ACQUIRED = RecordState.AVAILABLE, RecordState.ACQUIRED
ACKNOWLEDGED, ARCHIVED = RecordState.ACKNOWLEDGED, RecordState.ARCHIVED
ARCHIVING = RecordState.ARCHIVING

DONE = (ACKNOWLEDGED, ARCHIVED)
"""The final delivery states of a record: acknowledged and archived."""


class DeliveryRun:
    """A run: the offsets `first` to `last`, which have one state and were delivered `deliveries` times.

    `member` owns the acquisition lock until `deadline`, in seconds of the monotonic clock. `change` is the
    pending change to `next_state`, or None. This run may be a part of a range that was acquired together;
    `size` is the number of offsets in that range.
    """

    __slots__ = ("change", "deadline", "deliveries", "first", "last", "member", "next_state", "size", "state")

    def __init__(self, first: int, last: int, state: RecordState, deliveries: int = 0) -> None:
        self.first = first
        self.last = last
        self.state = state
        self.deliveries = deliveries
        self.member: str | None = None
        self.deadline = NEVER
        self.change: object | None = None
        self.next_state = state
        self.size = last - first + 1

    def __len__(self) -> int:
        return self.last - self.first + 1

    def __repr__(self) -> str:
        return f"Run({self.first}-{self.last} {self.state.name} x{self.deliveries} {self.member or ''})"

    @property
    def is_done(self) -> bool:
        """Return True if the records are acknowledged or archived, and this has been stored."""
        return self.state in DONE and self.change is None

    @property
    def is_free(self) -> bool:
        """Return True if the records can be acquired."""
        return self.state is AVAILABLE and self.change is None

    def unlock(self) -> None:
        """Remove the acquisition lock."""
        self.member, self.deadline = None, NEVER

    def split(self, offset: int) -> DeliveryRun:
        """Keep the offsets below `offset`; return a new run with all others and the same properties."""
        other = DeliveryRun(offset, self.last, self.state, self.deliveries)
        other.member, other.deadline = self.member, self.deadline
        other.change, other.next_state, other.size = self.change, self.next_state, self.size
        self.last = offset - 1
        return other


_first = attrgetter("first")


class RunWindow:
    """The runs of all offsets in flight, from `start` to `end`, in order and without gaps.

    If there are no runs, `end` is `start` - 1.
    """

    __slots__ = ("runs", "start")

    def __init__(self, start: int) -> None:
        self.start = start
        self.runs: list[DeliveryRun] = []

    def __iter__(self) -> Iterator[DeliveryRun]:
        return iter(self.runs)

    def __len__(self) -> int:
        """Return the number of offsets in the window."""
        return self.end - self.start + 1

    @property
    def end(self) -> int:
        """Return the last offset in the window, or `start` - 1 if the window is empty."""
        return self.runs[-1].last if self.runs else self.start - 1

    def index_of(self, offset: int) -> int:
        """Return the index of the run that contains an offset of the window."""
        return bisect_right(self.runs, offset, key=_first) - 1

    def overlapping(self, first: int, last: int) -> Iterator[DeliveryRun]:
        """Yield, unsplit, all runs that have any offset from `first` to `last`."""
        runs = self.runs
        for index in range(max(0, self.index_of(first)), len(runs)):
            run = runs[index]
            if run.first > last:
                return
            if run.last >= first:
                yield run

    def cut(self, first: int, last: int) -> list[DeliveryRun]:
        """Split runs at `first` and after `last`; return the runs with exactly the offsets in between."""
        first, last = max(first, self.start), min(last, self.end)
        if first > last:
            return []
        self._cut_at(first)
        self._cut_at(last + 1)
        return self.runs[self.index_of(first) : self.index_of(last) + 1]

    def _cut_at(self, offset: int) -> None:
        if self.start < offset <= self.end:
            index = self.index_of(offset)
            if self.runs[index].first < offset:
                self.runs.insert(index + 1, self.runs[index].split(offset))

    def put(self, run: DeliveryRun) -> None:
        """Put a run into the window: replace the runs at its offsets, or append it after the last offset."""
        if run.first > self.end:
            assert run.first == self.end + 1, (run, self.end)
            self.runs.append(run)
            return
        self._cut_at(run.first)
        self._cut_at(run.last + 1)
        index = self.index_of(run.first)
        end = self.index_of(min(run.last, self.end)) + 1
        self.runs[index:end] = [run]

    def join_done(self, first: int, last: int) -> None:
        """Join adjacent runs that have the same final state, in a range of offsets and next to it."""
        if not self.runs:
            return
        runs = self.runs
        index = max(0, self.index_of(first) - 1)
        end = min(len(runs), self.index_of(last) + 2)
        joined: list[DeliveryRun] = []
        for run in runs[index:end]:
            before = joined[-1] if joined else None
            if before is not None and before.is_done and before.state is run.state:
                before.last, before.deliveries = run.last, max(before.deliveries, run.deliveries)
            else:
                joined.append(run)
        runs[index:end] = joined

    def move_start(self, to: int = -1) -> bool:
        """Advance the start past all runs in a final state, at least to `to`; return True if it moved."""
        before = self.start
        runs = self.runs
        gone = 0
        for run in runs:
            if run.last >= to and not run.is_done:
                break
            self.start = run.last + 1
            gone += 1
        del runs[:gone]
        if self.start < to:
            self.start = to
            if runs:
                runs[0].first = to
        return self.start != before
