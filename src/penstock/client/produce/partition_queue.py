"""The batches of one partition: the order in which they are sent, their sequence numbers, and retries."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from penstock.client.produce.batches import SEQUENCE_MASK, ProducerBatch, Row
from penstock.client.producer_id import NO_PRODUCER_ID, ProducerId
from penstock.model import TopicPartition

REMEMBERED_BATCHES = 5
"""The number of a producer's last batches in a partition that brokers recognise as duplicates."""


class PartitionQueue:
    """The batches of one partition, oldest first: `again` (for retries), then `sealed`, then `open`."""

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
        self.open: ProducerBatch | None = None
        self.sealed: deque[ProducerBatch] = deque()
        self.again: list[ProducerBatch] = []
        self.in_flight: list[ProducerBatch] = []
        self.not_before = 0.0
        self.owner = NO_PRODUCER_ID
        self.next_sequence = 0
        self.next_number = 0
        self.is_established = False
        """True if the broker has accepted a batch of this producer id and epoch. Before that, the broker
        accepts any first sequence number: a batch that overtakes the first one would leave an undetected
        gap."""
        self.is_broken = False
        """True if the sequence has a gap that only a new epoch can close."""

    @property
    def has_waiting(self) -> bool:
        return bool(self.again or self.sealed or self.open)

    def is_within_reach(self, number: int) -> bool:
        """Return True if the broker, after batch `number`, still recognises the oldest unsettled batch.

        A broker keeps the sequence numbers of only the last few batches of a producer in each partition.
        """
        oldest = min((batch.number for batch in (*self.in_flight, *self.again)), default=number)
        return number - oldest < REMEMBERED_BATCHES

    def waiting(self) -> list[ProducerBatch]:
        """Return the batches that are not in flight, in the order in which they will be sent."""
        return [*self.again, *self.sealed, *([self.open] if self.open else [])]

    def first(self) -> ProducerBatch:
        """Return the batch that is sent next. There must be a waiting batch."""
        return self.waiting()[0]

    def seal(self) -> None:
        """Close the open batch, so that the next record begins another."""
        if self.open is not None:
            self.open.close()
            self.sealed.append(self.open)
            self.open = None

    def take(self, numbered: bool) -> ProducerBatch:
        """Remove and return the next batch, and count it as in flight.

        If `numbered`, a new batch gets its sequence number.
        """
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
        """Begin again at sequence 0 under a new epoch, and renumber the batches that wait for a retry."""
        self.owner = owner
        self.next_sequence = self.next_number = 0
        self.is_broken = self.is_established = False
        for batch in self.again:
            self._number(batch)

    def _number(self, batch: ProducerBatch) -> None:
        batch.owner = self.owner
        batch.base_sequence = self.next_sequence
        batch.number = self.next_number
        self.next_number += 1
        batch.payload = None
        self.next_sequence = (self.next_sequence + batch.count) & SEQUENCE_MASK

    def requeue(self, batch: ProducerBatch) -> None:
        """Queue a batch that was in flight for a retry, in the original order of batches."""
        position = len(self.again)
        while position and precedes(batch, self.again[position - 1]):
            position -= 1
        self.again.insert(position, batch)

    def split(
        self,
        batch: ProducerBatch,
        rows: Sequence[Row],
        sizes: Callable[[Row], int],
        new: Callable[[ProducerBatch], ProducerBatch],
    ) -> list[tuple[int, ProducerBatch]]:
        """Replace a waiting batch, whose records are `rows`, by two batches with half of the records each.

        `new` returns an empty batch for some of the records. Returns each new batch with the index of its
        first record; there are more than two if timestamps are too far apart. The batch numbers of later
        batches of the epoch change, while sequence numbers stay.
        """
        position = self.again.index(batch)
        parts: list[tuple[int, ProducerBatch]] = []
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

    def discard(self, batch: ProducerBatch) -> None:
        """Remove a waiting batch, and free its memory."""
        batch.drop()
        if self.open is batch:
            self.open = None
        elif batch in self.sealed:
            self.sealed.remove(batch)
        elif batch in self.again:
            self.again.remove(batch)


def precedes(one: ProducerBatch, other: ProducerBatch) -> bool:
    """Return True if `one` was filled before `other`; both belong to one partition and have been sent."""
    if one.base_sequence < 0:
        return one.created < other.created
    return ((one.base_sequence - other.base_sequence) & SEQUENCE_MASK) > SEQUENCE_MASK // 2
