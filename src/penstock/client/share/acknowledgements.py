"""Acknowledgements of share groups (KIP-932): their types, their encoding as batches, and their outcomes.

This module does no I/O. Acknowledgements are collected by offset, and sent as batches of offsets with their
types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from penstock.client.share.offset_map import RunMap, ValueRun
from penstock.errors import ConfigError
from penstock.model import TopicPartition

if TYPE_CHECKING:
    from penstock.errors import PenstockError

GAP = 0
"""The acknowledgement type of an acquired offset without a record: compacted, or a transaction marker."""

SEPARATE_RUN_MIN = 10
"""The minimum number of offsets in a run of one acknowledgement type for a batch of its own, which has the
type only once, as in Java.
"""


DIVISIONS_MAX = 64
"""The maximum number of divisions of a refused group of acknowledgements. Dividing finds the acknowledgements
that the broker refuses. Without a limit, thousands of expired locks would cost a request or two each."""


class AcknowledgeType(IntEnum):
    """The acknowledgement of a record by a share consumer. The numbers are the protocol's."""

    ACCEPT = 1
    """Processed: the record is not delivered again."""
    RELEASE = 2
    """Not processed: the record is delivered again, unless it has reached the group's limit of deliveries."""
    REJECT = 3
    """Cannot be processed: the record is not delivered again."""
    RENEW = 4
    """Still being processed: the record's lock begins anew (Kafka 4.2)."""

    @classmethod
    def of(cls, value: object) -> AcknowledgeType:
        """Return the type that `value` names: a type, its number, or its name as text.

        Raises:
            ConfigError: there is no such type.
        """
        if isinstance(value, cls):
            return value
        word = value.strip().upper() if isinstance(value, str) else value
        for each in cls:
            if word == each.name or (not isinstance(value, (bool, str)) and value == each.value):
                return each
        names = ", ".join(repr(each.name.lower()) for each in cls)
        raise ConfigError(f"{value!r} is no type of acknowledgement: write one of {names}")


Acknowledged = Mapping[TopicPartition, Sequence[range]]
"""A dict from partition to ranges of acknowledged offsets, in ascending order."""

AcknowledgementCallback = Callable[[Acknowledged, "PenstockError | None"], object]
"""A function that gets the offsets whose acknowledgements a broker has answered, and the error or None."""


class WireBatch(NamedTuple):
    """A batch of an acknowledgement request: the offsets `first` to `last`, and their types.

    `types` has one type for all offsets, or one for each offset.
    """

    first: int
    last: int
    types: list[int]


def wire_batches(runs: Iterable[ValueRun]) -> list[WireBatch]:
    """Return the batches for runs of types in ascending order: few batches, with few types in each."""
    batches: list[WireBatch] = []
    mixed: list[ValueRun] = []

    def flush() -> None:
        if mixed:
            types = [mixed[0].value]
            if len(mixed) > 1:
                types = [run.value for run in mixed for _ in range(run.size)]
            batches.append(WireBatch(mixed[0].first, mixed[-1].last, types))
            mixed.clear()

    for run in runs:
        if run.size >= SEPARATE_RUN_MIN:
            flush()
            batches.append(WireBatch(run.first, run.last, [run.value]))
            continue
        if mixed and mixed[-1].last + 1 != run.first:
            flush()
        mixed.append(run)
    flush()
    return batches


class AcknowledgementGroup:
    """Acknowledgements of one partition that are sent together, and succeed or fail together."""

    __slots__ = ("_divisions", "deadline", "is_fresh", "not_before", "number", "runs", "tp", "tries")

    def __init__(
        self, tp: TopicPartition, runs: Sequence[ValueRun], deadline: float, number: int = 0
    ) -> None:
        self.tp = tp
        self.runs = runs
        self.deadline = deadline
        """The time after which even a retriable failure is final, in monotonic seconds."""
        self.number = number
        """The sequence number of the first commit that waits for the outcome of this group."""
        self.is_fresh = True
        """True if this group has never been sent, alone or as part of another group."""
        self.tries = 0
        """The number of times that a broker has refused this group with a retriable error."""
        self.not_before = 0.0
        """The earliest time of the next attempt, in monotonic seconds."""
        self._divisions = [DIVISIONS_MAX]
        """The number of divisions that are still allowed, as a list of one item, which all groups made by
        division share."""

    @property
    def size(self) -> int:
        """The number of acknowledged offsets."""
        return sum(run.size for run in self.runs)

    @property
    def is_renewal(self) -> bool:
        """True if this group renews locks."""
        return bool(self.runs) and self.runs[0].value == AcknowledgeType.RENEW

    def absorb(self, other: AcknowledgementGroup) -> bool:
        """Merge another group into this one; return False if the two cannot be sent together."""
        if not (self.is_fresh and other.is_fresh) or self.number != other.number:
            return False
        if self.is_renewal != other.is_renewal:
            return False
        merged = RunMap(self.runs)
        for run in other.runs:
            if merged.within(run.first, run.last):
                return False  # given out twice: each is answered for itself
        for run in other.runs:
            merged.put(*run)
        self.runs = list(merged)
        return True

    def postpone(self, until: float) -> None:
        """Count a failed attempt, and set the time of the next attempt in monotonic seconds."""
        self.is_fresh = False
        self.tries += 1
        self.not_before = until

    def halves(self) -> tuple[AcknowledgementGroup, AcknowledgementGroup] | None:
        """Return two halves of the group, which can succeed independently; None if it cannot be divided."""
        if self.size < 2 or not self._divisions[0]:
            return None
        self._divisions[0] -= 1
        half = self.size // 2
        former: list[ValueRun] = []
        latter: list[ValueRun] = []
        for run in self.runs:
            cut = min(run.size, max(half, 0))
            half -= cut
            if cut:
                former.append(ValueRun(run.first, run.first + cut - 1, run.value))
            if cut < run.size:
                latter.append(ValueRun(run.first + cut, run.last, run.value))
        both = (
            AcknowledgementGroup(self.tp, former, self.deadline, self.number),
            AcknowledgementGroup(self.tp, latter, self.deadline, self.number),
        )
        for each in both:
            each.is_fresh = False
            each._divisions = self._divisions
        return both


class AcknowledgementOutcome(NamedTuple):
    """The outcome of acknowledgements: `error` is None if the broker has accepted them."""

    group: AcknowledgementGroup
    error: PenstockError | None

    @property
    def offsets(self) -> list[range]:
        """The acknowledged offsets as ranges, without offsets that have no record."""
        found: list[range] = []
        for run in self.group.runs:
            if run.value == GAP:
                continue
            if found and found[-1].stop == run.first:
                found[-1] = range(found[-1].start, run.last + 1)
            else:
                found.append(range(run.first, run.last + 1))
        return found


def joined(ranges: Iterable[range]) -> list[range]:
    """Return ranges of offsets in ascending order, with adjacent and overlapping ones merged."""
    found: list[range] = []
    for each in sorted(ranges, key=lambda each: each.start):
        if found and each.start <= found[-1].stop:
            found[-1] = range(found[-1].start, max(found[-1].stop, each.stop))
        else:
            found.append(each)
    return found
