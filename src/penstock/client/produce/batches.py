"""Batches on their way to the log, and the queue of one partition: the accumulator's nouns."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from penstock.client.produce.delivery import Outcome
from penstock.errors import PenstockError
from penstock.model import Header, TopicPartition

if TYPE_CHECKING:
    from typing_extensions import Buffer

Row = tuple["bytes | None", "bytes | None", Sequence[Header], int]
"""Key, value, headers, timestamp in milliseconds."""

SEQUENCE_MASK = 0x7FFFFFFF
"""Sequence numbers wrap from 2^31 - 1 to 0."""


REMEMBERED_BATCHES = 5
"""Brokers recognise a repetition of the last five batches of a producer at a partition."""


class ProducerId(NamedTuple):
    """What makes repetitions recognisable; `NO_PRODUCER_ID` where nothing does."""

    producer_id: int
    epoch: int


NO_PRODUCER_ID = ProducerId(-1, -1)


class Batch:
    """Records of one partition that travel together: rows, or bytes that are a batch already."""

    __slots__ = (
        "attempts",
        "base_sequence",
        "count",
        "created",
        "encoded",
        "error",
        "number",
        "outcome",
        "owner",
        "payload",
        "rows",
        "size",
    )

    def __init__(self, outcome: Outcome, created: float) -> None:
        self.outcome = outcome
        self.created = created
        self.rows: list[Row] = []
        self.encoded: memoryview | None = None
        self.count = 0
        self.size = 0
        self.attempts = 0
        self.error: PenstockError | None = None
        """Why the last attempt failed."""
        self.owner = NO_PRODUCER_ID
        self.base_sequence = -1
        self.number = 0
        """Counts the batches of a partition and epoch, as sequences count records."""
        self.payload: Buffer | None = None
        """The bytes as last sent, kept for a retry."""


class PartitionQueue:
    """The batches of one partition, oldest first: `again`, then `sealed`, then `open`."""

    __slots__ = (
        "again",
        "in_flight",
        "is_broken",
        "is_established",
        "next_number",
        "next_sequence",
        "not_before",
        "open",
        "owner",
        "sealed",
        "tp",
    )

    def __init__(self, tp: TopicPartition) -> None:
        self.tp = tp
        self.open: Batch | None = None
        self.sealed: deque[Batch] = deque()
        self.again: list[Batch] = []
        self.in_flight: list[Batch] = []
        self.not_before = 0.0
        self.owner = NO_PRODUCER_ID
        self.next_sequence = 0
        self.next_number = 0
        self.is_established = False
        """Whether the broker has accepted something of this owner. Before that it takes any sequence for the
        first: a batch that overtakes the first one would leave a gap that is not noticed."""
        self.is_broken = False
        """Whether the sequence has a gap that only a new epoch can close."""

    @property
    def has_waiting(self) -> bool:
        return bool(self.again or self.sealed or self.open)

    def is_within_reach(self, number: int) -> bool:
        """Whether the broker will still recognise the oldest unsettled batch when it has this one as well."""
        oldest = min((batch.number for batch in (*self.in_flight, *self.again)), default=number)
        return number - oldest < REMEMBERED_BATCHES

    def waiting(self) -> list[Batch]:
        return [*self.again, *self.sealed, *([self.open] if self.open else [])]


def precedes(one: Batch, other: Batch) -> bool:
    """Whether `one` was filled before `other`; both belong to one partition and have been sent."""
    if one.base_sequence < 0:
        return one.created < other.created
    return ((one.base_sequence - other.base_sequence) & SEQUENCE_MASK) > SEQUENCE_MASK // 2


def discard(queue: PartitionQueue, batch: Batch) -> None:
    if queue.open is batch:
        queue.open = None
    elif batch in queue.sealed:
        queue.sealed.remove(batch)
    elif batch in queue.again:
        queue.again.remove(batch)
