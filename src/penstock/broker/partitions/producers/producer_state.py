"""Idempotence: checks of the sequence numbers in each producer's batches to a partition.

For every producer id the partition keeps its epoch and its last five batches, because a producer may have
five requests in flight and repeat any of them. `judge` accepts, refuses or recognises a new batch; `record`
adds a batch that was written. After a restart, a call of `record` for every batch in the log rebuilds the
state.

The module decodes no records and reads no files; the caller passes the time as `now_ms`. The rules are those
of KIP-98 and KIP-360; the docstring of `judge` has a table of the cases.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from penstock.errors import KafkaError
from penstock.protocol.error_codes import ErrorCode, error_for

if TYPE_CHECKING:
    from penstock.records.format.batch_header import BatchHeader

_new = tuple.__new__

BATCHES_KEPT = 5
"""The number of batches stored per producer: idempotent producers of Java and librdkafka have at most so
many requests in flight."""

SEQUENCE_MAX = 2**31 - 1
"""The highest sequence number; the next one after it is 0."""

_SEQUENCES = SEQUENCE_MAX + 1

NO_PRODUCER = -1


class SeenBatch(NamedTuple):
    """One written batch of a producer: sequence numbers, offsets and time, to recognise a repeated batch."""

    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp: int


NO_COORDINATOR = -1
"""The value -1 for the coordinator epoch of a producer without a transaction marker in the partition."""

NO_OFFSET = -1
"""The value of `ProducerState.first_offset` if the producer has no open transaction."""


class ProducerState:
    """The state of one producer id in one partition. `batches` holds the last five, oldest first.

    `coordinator_epoch` is the transaction coordinator's epoch in the last marker. `first_offset` is the first
    offset of the producer's open transaction.
    """

    __slots__ = ("batches", "coordinator_epoch", "epoch", "first_offset", "seen_ms", "timestamp")

    def __init__(self, epoch: int, seen_ms: int) -> None:
        self.epoch = epoch
        self.seen_ms = seen_ms
        self.batches: list[SeenBatch] = []
        self.coordinator_epoch = NO_COORDINATOR
        self.first_offset = NO_OFFSET
        self.timestamp = -1
        """The timestamp of the last marker, in milliseconds since 1970; -1 if there is none."""


def last_sequence(first_sequence: int, count: int) -> int:
    """Return the sequence number of the last of `count` records from the first one's (it may wrap)."""
    return (first_sequence + count - 1) % _SEQUENCES


def first_sequence(last_sequence: int, count: int) -> int:
    """Return the sequence number of the first of `count` records from the last one's (it may wrap)."""
    return (last_sequence - count + 1) % _SEQUENCES


class Producers:
    """The states of the producers of one partition, by producer id.

    `expiration_ms` is the time after which an idle producer is dropped (`producer.id.expiration.ms`).
    """

    def __init__(self, expiration_ms: int) -> None:
        self._expiration_ms = expiration_ms
        self._states: dict[int, ProducerState] = {}

    def __len__(self) -> int:
        return len(self._states)

    def __contains__(self, producer_id: int) -> bool:
        return producer_id in self._states

    def judge(
        self, producer_id: int, epoch: int, first_sequence: int, count: int, now_ms: int
    ) -> SeenBatch | None:
        """Check a batch's sequence numbers; return None to write it, or the earlier batch that it repeats.

        =====================================================  ==================
        unknown producer                                       written
        epoch below the known one                              error 47
        same epoch, set by a marker: first sequence 0          written
        same epoch, set by a marker: other sequence            error 45
        epoch above the known one, first sequence 0            written
        epoch above the known one, other sequence              error 45
        same epoch, first and last as one of the five kept     that batch repeated
        same epoch, first follows the last one                 written
        same epoch, anything else                              error 45
        =====================================================  ==================

        Raises:
            KafkaError: INVALID_PRODUCER_EPOCH (47) or OUT_OF_ORDER_SEQUENCE_NUMBER (45).
        """
        state = self._states.get(producer_id)
        if state is None:
            return None
        if now_ms - state.seen_ms > self._expiration_ms and state.first_offset == NO_OFFSET:
            del self._states[producer_id]
            return None
        if epoch != state.epoch or not state.batches:
            return self._judge_epoch(state, producer_id, epoch, first_sequence)
        newest = state.batches[-1]
        if first_sequence == (newest.last_sequence + 1) % _SEQUENCES:
            return None
        last = last_sequence(first_sequence, count)
        for batch in state.batches:
            if batch.first_sequence == first_sequence and batch.last_sequence == last:
                return batch
        raise _out_of_order(producer_id, first_sequence, newest.last_sequence)

    @staticmethod
    def _judge_epoch(state: ProducerState, producer_id: int, epoch: int, first_sequence: int) -> None:
        if epoch < state.epoch:
            raise error_for(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {producer_id} comes with epoch {epoch}, the partition has seen {state.epoch}",
            )
        if first_sequence != 0:
            raise _out_of_order(producer_id, first_sequence, -1)

    def record(self, producer_id: int, epoch: int, batch: SeenBatch, now_ms: int) -> None:
        """Update the producer's state with a batch that was just written, or found in the log."""
        state = self._states.get(producer_id)
        if state is None:
            state = self._states[producer_id] = ProducerState(epoch, now_ms)
        elif epoch > state.epoch:
            state.epoch, state.batches = epoch, []
        state.seen_ms = now_ms
        batches = state.batches
        batches.append(batch)
        if len(batches) > BATCHES_KEPT:
            del batches[0]

    def record_batch(self, header: BatchHeader, first_offset: int, max_timestamp: int, now_ms: int) -> None:
        """Update the producer's state with a batch that was written, or found, at `first_offset`."""
        first, delta = header.base_sequence, header.last_offset_delta
        last = (first + delta) & SEQUENCE_MAX if first >= 0 else first
        seen = _new(SeenBatch, (first, last, first_offset, first_offset + delta, max_timestamp))
        self.record(header.producer_id, header.producer_epoch, seen, now_ms)

    def get(self, producer_id: int) -> ProducerState | None:
        """Return the state of a producer, or None if the partition has none."""
        return self._states.get(producer_id)

    def record_marker(
        self, producer_id: int, epoch: int, coordinator_epoch: int, timestamp: int, now_ms: int
    ) -> ProducerState:
        """Update a producer's state with a marker that was written or found in the log; return the state.

        After a marker that raises the epoch, sequence numbers begin with 0 again.
        """
        state = self._states.get(producer_id)
        if state is None:
            state = self._states[producer_id] = ProducerState(epoch, now_ms)
        elif epoch > state.epoch:
            state.epoch, state.batches = epoch, []
        state.seen_ms = now_ms
        state.coordinator_epoch, state.timestamp = coordinator_epoch, timestamp
        state.first_offset = NO_OFFSET
        return state

    def last_offsets(self) -> dict[int, int]:
        """Return the last data offset by producer id. Compaction must keep the batches at these offsets."""
        return {number: state.batches[-1].last_offset for number, state in self.items() if state.batches}

    def marker_epochs(self) -> dict[int, int]:
        """Return the epochs of the producers whose last batch is a marker, which compaction must keep."""
        return {number: state.epoch for number, state in self.items() if not state.batches}

    def items(self) -> Iterator[tuple[int, ProducerState]]:
        """Return an iterator over every producer id and its state."""
        return iter(self._states.items())

    def restore(self, states: dict[int, ProducerState]) -> None:
        """Replace the states of all producers with the states from a snapshot."""
        self._states = states

    def expire(self, now_ms: int) -> int:
        """Drop producers that have been idle for `expiration_ms`; return the number of dropped producers."""
        old = [
            producer_id
            for producer_id, state in self._states.items()
            if now_ms - state.seen_ms > self._expiration_ms and state.first_offset == NO_OFFSET
        ]
        for producer_id in old:
            del self._states[producer_id]
        return len(old)

    def forget_idlest(self, most: int) -> int:
        """Drop the longest idle producers until at most `most` are left; return the number dropped."""
        surplus = len(self._states) - most
        if surplus <= 0:
            return 0
        idle = [number for number, state in self._states.items() if state.first_offset == NO_OFFSET]
        idle.sort(key=lambda producer_id: self._states[producer_id].seen_ms)
        for producer_id in idle[:surplus]:
            del self._states[producer_id]
        return min(surplus, len(idle))


def _out_of_order(producer_id: int, sequence: int, newest: int) -> KafkaError:
    return error_for(
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        f"producer {producer_id} comes with sequence {sequence}, the last one written was {newest}",
    )
