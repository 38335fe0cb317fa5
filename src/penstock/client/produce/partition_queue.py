"""The batches of one partition: which is sent next, their sequence numbers, their order after failures."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from penstock.client.produce.batches import SEQUENCE_MASK, Batch, Row
from penstock.client.producer_id import NO_PRODUCER_ID, ProducerId
from penstock.model import TopicPartition

REMEMBERED_BATCHES = 5
"""Brokers recognise a repetition of the last five batches of a producer at a partition."""


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
        """Return whether the broker will still recognise the oldest unsettled batch when it has this one as
        well.
        """
        oldest = min((batch.number for batch in (*self.in_flight, *self.again)), default=number)
        return number - oldest < REMEMBERED_BATCHES

    def waiting(self) -> list[Batch]:
        """Return the batches that are not under way, in the order in which they are to be sent."""
        return [*self.again, *self.sealed, *([self.open] if self.open else [])]

    def first(self) -> Batch:
        """Return the batch that is sent next. Something must be waiting."""
        return self.waiting()[0]

    def seal(self) -> None:
        """Add no more records to the open batch."""
        if self.open is not None:
            self.open.close()
            self.sealed.append(self.open)
            self.open = None

    def take(self, numbered: bool) -> Batch:
        """Take out the next batch, and count it as under way. A new one gets its sequence if `numbered`."""
        if self.again:
            batch = self.again.pop(0)
        else:
            if not self.sealed:
                self.seal()
            batch = self.sealed.popleft()
            if numbered:
                self._number(batch)
        batch.attempts += 1
        self.in_flight.append(batch)
        return batch

    def begin_epoch(self, owner: ProducerId) -> None:
        """Begin again at sequence 0, with what waits to be sent again."""
        self.owner = owner
        self.next_sequence = self.next_number = 0
        self.is_broken = self.is_established = False
        for batch in self.again:
            self._number(batch)

    def _number(self, batch: Batch) -> None:
        batch.owner = self.owner
        batch.base_sequence = self.next_sequence
        batch.number = self.next_number
        self.next_number += 1
        batch.payload = None
        self.next_sequence = (self.next_sequence + batch.count) & SEQUENCE_MASK

    def requeue(self, batch: Batch) -> None:
        """Have a batch that was under way sent again, in its order."""
        position = len(self.again)
        while position and precedes(batch, self.again[position - 1]):
            position -= 1
        self.again.insert(position, batch)

    def split(
        self, batch: Batch, rows: Sequence[Row], sizes: Callable[[Row], int], new: Callable[[Batch], Batch]
    ) -> list[tuple[int, Batch]]:
        """Put two halves in the place of a waiting batch, whose records are `rows`.

        `new` makes an empty batch for some of its records. Returns each part with the index of its first
        record: there are more than two where times are too far apart. Later batches of the epoch get other
        numbers; sequences stay what they are.
        """
        position = self.again.index(batch)
        parts: list[tuple[int, Batch]] = []
        for index, row in enumerate(rows):
            size = sizes(row)
            if index in (0, len(rows) // 2) or parts[-1][1].writer.add(*row, size) < 0:
                part = new(batch)
                if batch.base_sequence >= 0:
                    part.base_sequence = (batch.base_sequence + index) & SEQUENCE_MASK
                part.number = batch.number + len(parts)
                part.writer.add(*row, size)
                parts.append((index, part))
        for _, part in parts:
            part.close()
        for later in (*self.in_flight, *self.again[position + 1 :]):
            if later.number > batch.number:
                later.number += len(parts) - 1
        self.next_number += len(parts) - 1
        self.again[position : position + 1] = [part for _, part in parts]
        return parts

    def discard(self, batch: Batch) -> None:
        """Remove a batch that waits."""
        batch.drop()
        if self.open is batch:
            self.open = None
        elif batch in self.sealed:
            self.sealed.remove(batch)
        elif batch in self.again:
            self.again.remove(batch)


def precedes(one: Batch, other: Batch) -> bool:
    """Return whether `one` was filled before `other`; both belong to one partition and have been sent."""
    if one.base_sequence < 0:
        return one.created < other.created
    return ((one.base_sequence - other.base_sequence) & SEQUENCE_MASK) > SEQUENCE_MASK // 2
