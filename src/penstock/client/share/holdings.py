"""What a share consumer holds: records that were acquired and not acknowledged, and decisions about them.

No I/O. A record is acquired when a broker has locked it for this member; it is held once the application has
it, and decided once it is acknowledged. Decisions are collected here, and taken by what sends them. All
methods may be called from any thread.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Container, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.client.share.acknowledgements import GAP, AcknowledgeType, Group, Outcome
from penstock.client.share.offset_map import OffsetMap, Run
from penstock.errors import ConfigError
from penstock.model import TopicPartition

if TYPE_CHECKING:
    from penstock.errors import PenstockError

OUTCOMES_MAX = 10_000
"""Outcomes that wait for the callback. An application that never polls again would collect them for ever."""


def never() -> bool:
    """Return False."""
    return False


class AcquiredPart(NamedTuple):
    """What one answer holds of one partition: whole batches, and which of their offsets were acquired."""

    tp: TopicPartition
    topic_id: bytes
    node_id: int
    records: memoryview
    acquired: Sequence[Run]
    """Ascending; the values are delivery counts."""
    deadline: float
    """Monotonic seconds at which the locks run out."""
    is_released: Callable[[], bool] = never
    """Returns whether the broker has let go of the locks before that, as far as this client has learned."""


class Decision(NamedTuple):
    """What is to be sent for one partition: its acknowledgements, and locks to be prolonged."""

    tp: TopicPartition
    topic_id: bytes
    node_id: int
    group: Group


class _Partition:
    """The records of one partition that came from one node."""

    __slots__ = ("decided", "held", "kept", "node_id", "renewing", "topic_id")

    def __init__(self, topic_id: bytes, node_id: int) -> None:
        self.topic_id = topic_id
        self.node_id = node_id
        self.held = OffsetMap()
        """Offsets that the application has, and has not decided about; the values are delivery counts."""
        self.decided = OffsetMap()
        """Offsets that are decided and not sent; the values are types."""
        self.renewing = OffsetMap()
        """Offsets whose locks are to be prolonged, and are not sent."""
        self.kept = OffsetMap()
        """Offsets that the application is given again, since it has prolonged their locks."""


class Holdings:
    """The records of one share consumer. `now` is the clock of deadlines, in seconds."""

    def __init__(self, now: Callable[[], float], patience_s: float) -> None:
        self._now = now
        self._patience_s = patience_s
        """For how long failures of acknowledgements are tried again that may pass."""
        self.lock = threading.RLock()
        self._partitions: dict[TopicPartition, _Partition] = {}
        self._parts: deque[AcquiredPart] = deque()
        self.size_bytes = 0
        """The size of what was acquired, and has not been taken."""
        self.collects_outcomes = False
        """Whether there is a callback."""
        self._outcomes: deque[Outcome] = deque(maxlen=OUTCOMES_MAX)
        self._number = 0
        self._unsettled: dict[int, int] = {}
        """How many offsets of each commit are on their way."""
        self._errors: dict[int, dict[TopicPartition, PenstockError | None]] = {}
        self.renewed: list[tuple[TopicPartition, Any]] = []
        """What the application gets again because its locks were prolonged: records, or Arrow batches."""
        self.refused = 0
        """How many offsets were acknowledged, and their acknowledgements came to nothing."""
        self.counted = 0
        """How many records were handed out."""
        self.counted_bytes = 0

    # -- what comes

    def add(self, part: AcquiredPart) -> None:
        """Take what was acquired."""
        with self.lock:
            self._parts.append(part)
            self.size_bytes += part.records.nbytes
            self.counted_bytes += part.records.nbytes

    @property
    def has_parts(self) -> bool:
        """Whether something was acquired that has not been taken."""
        return bool(self._parts)

    def next_part(self) -> AcquiredPart | None:
        """Return the oldest part that is still locked; the others come again by themselves."""
        with self.lock:
            while self._parts:
                part = self._parts.popleft()
                self.size_bytes -= part.records.nbytes
                if not self.is_late(part):
                    return part
            return None

    def is_late(self, part: AcquiredPart) -> bool:
        """Return whether the locks of a part have run out, or have been released with their session."""
        return part.deadline <= self._now() or part.is_released()

    def put_back(self, part: AcquiredPart) -> None:
        """Have a part, or what is left of one, taken first the next time."""
        with self.lock:
            self._parts.appendleft(part)
            self.size_bytes += part.records.nbytes

    def hold(self, part: AcquiredPart, runs: Iterable[Run]) -> None:
        """Note offsets of a part that the application gets now."""
        with self.lock:
            partition = self._of(part)
            for run in runs:
                partition.held.put(*run)
                self.counted += run.size

    def decide_unseen(self, part: AcquiredPart, runs: Iterable[Run], kind: int) -> None:
        """Acknowledge offsets of a part that the application does not get: gaps, and what cannot be read."""
        with self.lock:
            partition = self._of(part)
            for run in runs:
                partition.decided.put(run.first, run.last, kind)

    def _of(self, part: AcquiredPart) -> _Partition:
        partition = self._partitions.get(part.tp)
        if partition is None or (partition.node_id, partition.topic_id) != (part.node_id, part.topic_id):
            # What the former leader gave out is not locked any more, and is given out anew.
            partition = self._partitions[part.tp] = _Partition(part.topic_id, part.node_id)
        return partition

    # -- what the application decides

    @property
    def held(self) -> int:
        """How many offsets the application has and has not decided about."""
        with self.lock:
            return sum(partition.held.size for partition in self._partitions.values())

    def acknowledge(self, tp: TopicPartition, first: int, last: int, kind: AcknowledgeType) -> None:
        """Decide about offsets that the application has, or about those decided and not sent, anew.

        Raises:
            ConfigError: the application does not have all of them.
        """
        with self.lock:
            partition = self._partitions.get(tp)
            there = 0
            if partition is not None:
                maps = (partition.held, partition.decided, partition.kept)
                there = sum(run.size for each in maps for run in each.within(first, last))
            if partition is None or there != last - first + 1:
                what = f"offset {first}" if first == last else f"offsets {first} to {last}"
                raise ConfigError(
                    f"{what} of {tp}: not in hand; acknowledge records of the last poll, and each before the "
                    "next one"
                )
            if kind is AcknowledgeType.RENEW:
                for run in (*partition.held.remove(first, last), *partition.decided.remove(first, last)):
                    partition.kept.put(*run)
                partition.renewing.put(first, last, kind)
            else:
                for each in (partition.held, partition.kept, partition.renewing):
                    each.remove(first, last)
                partition.decided.put(first, last, kind)

    def acknowledge_held(self, tp: TopicPartition, offset: int, kind: AcknowledgeType) -> bool:
        """Decide about a record that is still held; return False where its lock went to another leader."""
        with self.lock:
            partition = self._partitions.get(tp)
            if partition is None or not partition.held.remove(offset, offset):
                return False
            partition.decided.put(offset, offset, kind)
            return True

    def acknowledge_all(self, kind: AcknowledgeType) -> None:
        """Decide about everything that the application has."""
        with self.lock:
            for partition in self._partitions.values():
                for run in partition.held.take():
                    partition.decided.put(run.first, run.last, kind)

    def renew_in_place(self, tp: TopicPartition, offset: int) -> None:
        """Prolong the lock of a record that the application goes on to hold."""
        with self.lock:
            partition = self._partitions.get(tp)
            if partition is not None and partition.held.covers(offset, offset):
                partition.renewing.put(offset, offset, AcknowledgeType.RENEW)

    def forget(self) -> None:
        """Drop everything: the consumer has left the group."""
        with self.lock:
            self._parts.clear()
            self._partitions.clear()
            self.size_bytes = 0
            self.renewed = []

    def drop_renewals(self) -> None:
        """Take decisions to prolong locks back: the records are released with the session."""
        with self.lock:
            for partition in self._partitions.values():
                partition.renewing.take()
                partition.kept.take()
            self.renewed = []

    # -- what is sent

    @property
    def is_decided(self) -> bool:
        """Whether there is something to be sent."""
        with self.lock:
            return any(each.decided or each.renewing for each in self._partitions.values())

    @property
    def is_quiet(self) -> bool:
        """Whether nothing waits to be taken, and every decision has been sent and answered.

        What was released may come again before that.
        """
        with self.lock:
            return not (self._parts or self._unsettled or self.is_decided)

    def decisions(self, busy: Container[int] = (), patience_s: float | None = None) -> list[Decision]:
        """Return what is to be sent, but to nodes that are `busy`, and take it to be on its way.

        Failures that may pass are tried again for `patience_s` seconds, by default those of the consumer.
        """
        deadline = self._now() + (self._patience_s if patience_s is None else patience_s)
        with self.lock:
            found: list[Decision] = []
            for tp, partition in list(self._partitions.items()):
                if partition.node_id in busy:
                    continue
                for runs in (partition.decided.take(), partition.renewing.take()):
                    if not runs:
                        continue
                    group = Group(tp, runs, deadline, self._number)
                    self._unsettled[self._number] = self._unsettled.get(self._number, 0) + group.size
                    found.append(Decision(tp, partition.topic_id, partition.node_id, group))
                if not (partition.held or partition.kept):
                    del self._partitions[tp]
            return found

    def settle(self, group: Group, error: PenstockError | None) -> None:
        """Note what became of acknowledgements."""
        with self.lock:
            left = self._unsettled.get(group.number, 0) - group.size
            if left > 0:
                self._unsettled[group.number] = left
            else:
                self._unsettled.pop(group.number, None)
            outcome = Outcome(group, error)
            partition = self._partitions.get(group.tp)
            if error is not None and not group.is_renewal:
                self.refused += sum(len(each) for each in outcome.offsets)
            if group.is_renewal and error is not None and partition is not None:
                for run in group.runs:
                    partition.kept.remove(run.first, run.last)
            for number, errors in self._errors.items():
                if group.number <= number and outcome.offsets:
                    errors[group.tp] = errors.get(group.tp) or error
            if self.collects_outcomes and outcome.offsets:
                self._outcomes.append(outcome)

    def take_outcomes(self) -> list[Outcome]:
        """Return what became of acknowledgements since the last call."""
        with self.lock:
            outcomes = list(self._outcomes)
            self._outcomes.clear()
            return outcomes

    # -- commits

    def begin_commit(self) -> int:
        """Return the number of a commit: of all that is on its way, or is taken before it is sealed."""
        with self.lock:
            self._errors[self._number] = {}
            return self._number

    def seal_commit(self) -> None:
        """Count what is taken from now on to the next commit."""
        with self.lock:
            self._number += 1

    def is_settled(self, number: int) -> bool:
        """Return whether everything of a commit, and of those before, has been answered."""
        with self.lock:
            return not any(each <= number for each in self._unsettled)

    def end_commit(self, number: int) -> dict[TopicPartition, PenstockError | None]:
        """Return the partitions of a commit, with the first error of each."""
        with self.lock:
            return self._errors.pop(number, {})

    # -- what comes again because its lock was prolonged

    def keep_renewed(self, tp: TopicPartition, what: Any) -> None:
        """Keep what the application is to be given again: a record, or an Arrow batch."""
        with self.lock:
            self.renewed.append((tp, what))

    @property
    def has_renewed(self) -> bool:
        """Whether the application is to be given something again before anything new."""
        return bool(self.renewed)

    def hold_renewed(self) -> list[tuple[TopicPartition, Any, OffsetMap]]:
        """Hand out again what was kept. The offsets are those whose locks were prolonged: of a batch perhaps
        not all."""
        with self.lock:
            kept: dict[TopicPartition, OffsetMap] = {}
            for tp, partition in self._partitions.items():
                runs = partition.kept.take()
                kept[tp] = OffsetMap(runs)
                for run in runs:
                    partition.held.put(*run)
            renewed, self.renewed = self.renewed, []
            return [(tp, what, kept.get(tp, OffsetMap())) for tp, what in renewed]


def gaps(acquired: Iterable[Run], present: OffsetMap) -> list[Run]:
    """Return the acquired offsets that have no record, as runs of type `GAP`."""
    missing: list[Run] = []
    for run in acquired:
        at = run.first
        for seen in present.within(run.first, run.last):
            if at < seen.first:
                missing.append(Run(at, seen.first - 1, GAP))
            at = seen.last + 1
        if at <= run.last:
            missing.append(Run(at, run.last, GAP))
    return missing
