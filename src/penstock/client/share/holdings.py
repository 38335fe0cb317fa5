"""The records that a share consumer has acquired and not acknowledged yet, and their acknowledgements.

This module does no I/O. A record is acquired when a broker has locked it for this member, held once the
application has it, and decided once the application has acknowledged it; the fetcher then sends the
acknowledgement. Any thread may call all methods.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Container, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.client.share.acknowledgements import (
    GAP,
    AcknowledgementGroup,
    AcknowledgementOutcome,
    AcknowledgeType,
)
from penstock.client.share.offset_map import RunMap, ValueRun
from penstock.errors import ConfigError
from penstock.model import TopicPartition

if TYPE_CHECKING:
    from penstock.errors import PenstockError

OUTCOMES_MAX = 10_000
"""The maximum number of outcomes kept for the callback, since an application may never poll again."""


def never() -> bool:
    """Return False: the default of `AcquiredPart.is_released`."""
    return False


class AcquiredPart(NamedTuple):
    """The part of a ShareFetch response for one partition: record batches, and the acquired offsets."""

    tp: TopicPartition
    topic_id: bytes
    node_id: int
    records: memoryview
    acquired: Sequence[ValueRun]
    """Ascending runs of acquired offsets; the values are delivery counts."""
    deadline: float
    """The time at which the locks expire, in monotonic seconds."""
    is_released: Callable[[], bool] = never
    """A function that returns True if this client has detected that the broker has released the locks before
    `deadline`."""


class HoldingsToSend(NamedTuple):
    """Acknowledgements, or renewals of locks, to send for one partition."""

    tp: TopicPartition
    topic_id: bytes
    node_id: int
    group: AcknowledgementGroup


class _Partition:
    """One partition's offsets that the application has, or has acknowledged.

    All records of these offsets came from one broker.
    """

    __slots__ = ("decided", "held", "kept", "node_id", "renewing", "topic_id")

    def __init__(self, topic_id: bytes, node_id: int) -> None:
        self.topic_id = topic_id
        self.node_id = node_id
        self.held = RunMap()
        """Offsets that the application has but has not acknowledged; the values are delivery counts."""
        self.decided = RunMap()
        """Offsets whose acknowledgements are not sent yet; the values are acknowledgement types."""
        self.renewing = RunMap()
        """Offsets whose locks are to be renewed by the next request."""
        self.kept = RunMap()
        """Offsets whose locks the application has renewed, and which it gets again; the values are delivery
        counts."""


class Holdings:
    """Stores the acquired records of one share consumer. `now` returns the time in seconds, for deadlines."""

    def __init__(self, now: Callable[[], float], patience_s: float) -> None:
        self._now = now
        self._patience_s = patience_s
        """The time in seconds for which acknowledgements are retried after retriable failures."""
        self.lock = threading.RLock()
        self._partitions: dict[TopicPartition, _Partition] = {}
        self._parts: deque[AcquiredPart] = deque()
        self.size_bytes = 0
        """The size in bytes of acquired parts that were not returned to the application."""
        self.collects_outcomes = False
        """True if outcomes are stored, because the application has a callback for them."""
        self._outcomes: deque[AcknowledgementOutcome] = deque(maxlen=OUTCOMES_MAX)
        self._number = 0
        self._unsettled: dict[int, int] = {}
        """A dict from commit number to the number of offsets whose acknowledgements await a response."""
        self._errors: dict[int, dict[TopicPartition, PenstockError | None]] = {}
        self.renewed: list[tuple[TopicPartition, Any]] = []
        """Records or Arrow batches whose locks were renewed. The application gets them again."""
        self.refused = 0
        """The number of offsets whose acknowledgements were refused or lost."""
        self.counted = 0
        """The number of records that were returned to the application."""
        self.counted_bytes = 0

    # -- what comes

    def add(self, part: AcquiredPart) -> None:
        """Add acquired records of one partition, which the application has not received yet."""
        with self.lock:
            self._parts.append(part)
            self.size_bytes += part.records.nbytes
            self.counted_bytes += part.records.nbytes

    @property
    def has_parts(self) -> bool:
        """True if there are acquired records that were not returned to the application."""
        return bool(self._parts)

    def next_part(self) -> AcquiredPart | None:
        """Remove and return the oldest acquired records whose locks still hold, or None.

        Records whose locks have expired are dropped, since brokers deliver them again.
        """
        with self.lock:
            while self._parts:
                part = self._parts.popleft()
                self.size_bytes -= part.records.nbytes
                if not self.is_late(part):
                    return part
            return None

    def is_late(self, part: AcquiredPart) -> bool:
        """Return True if the locks of acquired records have expired, or the broker has released them."""
        return part.deadline <= self._now() or part.is_released()

    def put_back(self, part: AcquiredPart) -> None:
        """Put acquired records that were not all returned back at the front of the queue."""
        with self.lock:
            self._parts.appendleft(part)
            self.size_bytes += part.records.nbytes

    def hold(self, part: AcquiredPart, runs: Iterable[ValueRun]) -> None:
        """Record that these offsets of acquired records are being returned to the application."""
        with self.lock:
            partition = self._of(part)
            for run in runs:
                partition.held.put(*run)
                self.counted += run.size

    def decide_unseen(self, part: AcquiredPart, runs: Iterable[ValueRun], kind: int) -> None:
        """Acknowledge offsets that the application does not get: gaps, and records that cannot be read."""
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
        """The number of offsets that the application has but has not acknowledged."""
        with self.lock:
            return sum(partition.held.size for partition in self._partitions.values())

    def acknowledge(self, tp: TopicPartition, first: int, last: int, kind: AcknowledgeType) -> None:
        """Acknowledge held offsets, or replace acknowledgements that have not been sent.

        Raises:
            ConfigError: this consumer does not hold all of the offsets.
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
        """Acknowledge a record that is held; return False if this consumer does not hold it any more."""
        with self.lock:
            partition = self._partitions.get(tp)
            if partition is None or not partition.held.remove(offset, offset):
                return False
            partition.decided.put(offset, offset, kind)
            return True

    def acknowledge_all(self, kind: AcknowledgeType) -> None:
        """Acknowledge every record that is held, with the type `kind`."""
        with self.lock:
            for partition in self._partitions.values():
                for run in partition.held.take():
                    partition.decided.put(run.first, run.last, kind)

    def renew_in_place(self, tp: TopicPartition, offset: int) -> None:
        """Renew the lock of a record that the application continues to hold."""
        with self.lock:
            partition = self._partitions.get(tp)
            if partition is not None and partition.held.covers(offset, offset):
                partition.renewing.put(offset, offset, AcknowledgeType.RENEW)

    def forget(self) -> None:
        """Drop all records and acknowledgements, because the consumer has left the group."""
        with self.lock:
            self._parts.clear()
            self._partitions.clear()
            self.size_bytes = 0
            self.renewed = []

    def drop_renewals(self) -> None:
        """Drop renewals of locks that were not sent, because the session ends and releases the records."""
        with self.lock:
            for partition in self._partitions.values():
                partition.renewing.take()
                partition.kept.take()
            self.renewed = []

    # -- what is sent

    @property
    def is_decided(self) -> bool:
        """True if there are acknowledgements or renewals to send."""
        with self.lock:
            return any(each.decided or each.renewing for each in self._partitions.values())

    @property
    def is_quiet(self) -> bool:
        """True if all acquired records were taken, and brokers have answered every acknowledgement.

        Until then, released records may still be delivered again.
        """
        with self.lock:
            return not (self._parts or self._unsettled or self.is_decided)

    def decisions(self, busy: Container[int] = (), patience_s: float | None = None) -> list[HoldingsToSend]:
        """Remove and return the acknowledgements to send, except to nodes in `busy`; count them as in flight.

        The acknowledgements are retried after retriable failures for `patience_s` seconds, by default the
        consumer's.
        """
        deadline = self._now() + (self._patience_s if patience_s is None else patience_s)
        with self.lock:
            found: list[HoldingsToSend] = []
            for tp, partition in list(self._partitions.items()):
                if partition.node_id in busy:
                    continue
                for runs in (partition.decided.take(), partition.renewing.take()):
                    if not runs:
                        continue
                    group = AcknowledgementGroup(tp, runs, deadline, self._number)
                    self._unsettled[self._number] = self._unsettled.get(self._number, 0) + group.size
                    found.append(HoldingsToSend(tp, partition.topic_id, partition.node_id, group))
                if not (partition.held or partition.kept):
                    del self._partitions[tp]
            return found

    def settle(self, group: AcknowledgementGroup, error: PenstockError | None) -> None:
        """Record the outcome of a group of acknowledgements: `error`, or None after a success."""
        with self.lock:
            left = self._unsettled.get(group.number, 0) - group.size
            if left > 0:
                self._unsettled[group.number] = left
            else:
                self._unsettled.pop(group.number, None)
            outcome = AcknowledgementOutcome(group, error)
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

    def take_outcomes(self) -> list[AcknowledgementOutcome]:
        """Return the outcomes of acknowledgements since the last call."""
        with self.lock:
            outcomes = list(self._outcomes)
            self._outcomes.clear()
            return outcomes

    # -- commits

    def begin_commit(self) -> int:
        """Begin a commit, which covers all acknowledgements sent until `seal_commit`; return its number."""
        with self.lock:
            self._errors[self._number] = {}
            return self._number

    def seal_commit(self) -> None:
        """End the current commit: acknowledgements that are sent later belong to the next one."""
        with self.lock:
            self._number += 1

    def is_settled(self, number: int) -> bool:
        """Return True if brokers have answered all acknowledgements of this commit and of earlier ones."""
        with self.lock:
            return not any(each <= number for each in self._unsettled)

    def end_commit(self, number: int) -> dict[TopicPartition, PenstockError | None]:
        """Remove a commit; return the first error of each of its partitions, or None for a success."""
        with self.lock:
            return self._errors.pop(number, {})

    # -- what comes again because its lock was prolonged

    def keep_renewed(self, tp: TopicPartition, what: Any) -> None:
        """Keep a record or an Arrow batch, which the application gets again once its locks are renewed."""
        with self.lock:
            self.renewed.append((tp, what))

    @property
    def has_renewed(self) -> bool:
        """True if there are renewed records, which the application gets before any new ones."""
        return bool(self.renewed)

    def hold_renewed(self) -> list[tuple[TopicPartition, Any, RunMap]]:
        """Return the renewed records or batches, each with the offsets whose locks were in fact renewed.

        Only some of the locks of a batch may have been renewed. The returned offsets count as held again.
        """
        with self.lock:
            kept: dict[TopicPartition, RunMap] = {}
            for tp, partition in self._partitions.items():
                runs = partition.kept.take()
                kept[tp] = RunMap(runs)
                for run in runs:
                    partition.held.put(*run)
            renewed, self.renewed = self.renewed, []
            return [(tp, what, kept.get(tp, RunMap())) for tp, what in renewed]


def gaps(acquired: Iterable[ValueRun], present: RunMap) -> list[ValueRun]:
    """Return the acquired offsets that have no record, as runs of type `GAP`."""
    missing: list[ValueRun] = []
    for run in acquired:
        at = run.first
        for seen in present.within(run.first, run.last):
            if at < seen.first:
                missing.append(ValueRun(at, seen.first - 1, GAP))
            at = seen.last + 1
        if at <= run.last:
            missing.append(ValueRun(at, run.last, GAP))
    return missing
