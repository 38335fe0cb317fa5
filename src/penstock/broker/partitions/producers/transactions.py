"""Transactions in one partition: the open ones, the aborted ones, and the last stable offset.

Records of a transaction are hidden from `read_committed` consumers until its marker is in the log. The
partition keeps the first offset of each open transaction, so that the last stable offset is known at any
time, and an entry for each aborted transaction (`.txnindex`), so that readers skip its records.

A batch may open a transaction in the partition only if the coordinator confirms that the transaction is open
(KIP-890). For this the partition creates a `Verification`, and checks it again when the batch is appended. A
marker in between makes the verification invalid, so that a late batch cannot open a transaction that no
marker ever ends.

The module does no I/O and reads no clock: offsets, epochs and times are arguments.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from penstock.broker.partitions.producers.producer_state import NO_COORDINATOR, NO_OFFSET, Producers
from penstock.errors import KafkaError
from penstock.protocol.error_codes import ErrorCode, error_for

EPOCH_MAX = 32767
"""The highest producer epoch. A marker with this epoch is the last one of its producer id, and is
accepted repeatedly.
"""

STRICT_MARKERS_SINCE = 2
"""The transaction version from which on a marker must raise the producer epoch (KIP-1228)."""


VERIFICATIONS_MAX = 10_000
"""The maximum number of verifications of a partition. A further one replaces the oldest, whose producer
must be verified again.
"""


class AbortedTransaction(NamedTuple):
    """One aborted transaction. The fields are those of an entry in a `.txnindex` file, in that order."""

    producer_id: int
    first_offset: int
    marker_offset: int
    last_stable_offset: int
    """The partition's last stable offset right after the abort marker was written."""


class Verification:
    """A permission for a batch to open a transaction, valid once the coordinator agrees (KIP-890)."""

    __slots__ = ("asked_ms", "epoch", "is_implicit", "lowest_sequence")

    def __init__(self, epoch: int, first_sequence: int, is_implicit: bool, asked_ms: int) -> None:
        self.epoch = epoch
        self.lowest_sequence = first_sequence
        """The lowest first sequence number of the batches that wait for this verification. The batch with
        this number must be written first."""
        self.is_implicit = is_implicit
        self.asked_ms = asked_ms


class Transactions:
    """The transactions of one partition. `producers` has the producers' epochs and sequence numbers."""

    def __init__(self, producers: Producers) -> None:
        self._producers = producers
        self.open: dict[int, int] = {}
        """A dict from producer id to the first offset of its open transaction, in ascending order of
        offsets."""
        self._verifications: dict[int, Verification] = {}
        for producer_id, state in sorted(producers.items(), key=lambda item: item[1].first_offset):
            if state.first_offset != NO_OFFSET:
                self.open[producer_id] = state.first_offset

    # --- reading -----------------------------------------------------------------------------------------

    @property
    def first_unstable_offset(self) -> int | None:
        """The first offset of the oldest open transaction; None if none is open."""
        return next(iter(self.open.values()), None)

    def last_stable_offset(self, start_offset: int, high_watermark: int) -> int:
        """Return the last stable offset, at least `start_offset` and at most `high_watermark`."""
        first = self.first_unstable_offset
        return high_watermark if first is None else min(max(first, start_offset), high_watermark)

    def open_transactions(self) -> Iterator[tuple[int, int]]:
        """Return an iterator over the (producer id, first offset) of every open transaction, oldest first."""
        return iter(self.open.items())

    # --- data --------------------------------------------------------------------------------------------

    def is_open(self, producer_id: int, epoch: int) -> bool:
        """Return True if a producer has an open transaction that began with this producer epoch."""
        state = self._producers.get(producer_id)
        return state is not None and state.epoch == epoch and producer_id in self.open

    def begin_verification(
        self, producer_id: int, epoch: int, first_sequence: int, is_implicit: bool, now_ms: int
    ) -> Verification | None:
        """Return a transactional batch's `Verification`, to be confirmed by the coordinator.

        Returns None if the transaction is open already, so that no request to the coordinator is needed.

        Raises:
            KafkaError: INVALID_PRODUCER_EPOCH (47), a newer producer has written.
        """
        state = self._producers.get(producer_id)
        if state is not None:
            if state.epoch > epoch:
                raise _fenced(producer_id, epoch, state.epoch)
            if self.is_open(producer_id, epoch):
                return None
        found = self._verifications.get(producer_id)
        if found is None or found.epoch < epoch:
            found = Verification(epoch, first_sequence, is_implicit, now_ms)
            if len(self._verifications) >= VERIFICATIONS_MAX:
                del self._verifications[next(iter(self._verifications))]
            self._verifications[producer_id] = found
        elif found.epoch == epoch:
            found.lowest_sequence = min(found.lowest_sequence, first_sequence)
            found.is_implicit = is_implicit
        else:
            raise _fenced(producer_id, epoch, found.epoch)
        return found

    def check_append(
        self,
        producer_id: int,
        epoch: int,
        first_sequence: int,
        is_transactional: bool,
        verification: Verification | None,
    ) -> None:
        """Check that the state of the producer's transaction allows a new batch.

        Without `verification`, a batch may only continue a transaction that is open already.

        Raises:
            KafkaError: INVALID_TXN_STATE (48), INVALID_PRODUCER_EPOCH (47), or
                OUT_OF_ORDER_SEQUENCE_NUMBER (45) for a batch that has overtaken another.
        """
        is_open = producer_id in self.open
        state = self._producers.get(producer_id)
        if not is_transactional:
            if is_open:
                raise error_for(
                    ErrorCode.INVALID_TXN_STATE,
                    f"producer {producer_id} has a transaction open, and sends a batch outside of it",
                )
            return
        if state is not None and state.epoch > epoch:
            raise _fenced(producer_id, epoch, state.epoch)
        if is_open and state is not None and state.epoch == epoch:
            return
        if verification is None or self._verifications.get(producer_id) is not verification:
            raise error_for(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {producer_id} has no transaction that includes this partition; it may have ended",
            )
        starts_late = state is None and verification.is_implicit and first_sequence != 0
        if first_sequence > verification.lowest_sequence or starts_late:
            raise error_for(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {producer_id} begins its transaction with sequence {first_sequence}, "
                "before earlier batches have been written",
            )

    def record_data(self, producer_id: int, first_offset: int) -> None:
        """Record a transactional batch that was written or found in the log; it may open the transaction.

        The caller must call `Producers.record` for the batch first.
        """
        self._verifications.pop(producer_id, None)
        if producer_id not in self.open:
            self.open[producer_id] = first_offset
            state = self._producers.get(producer_id)
            if state is not None:
                state.first_offset = first_offset

    # --- markers -----------------------------------------------------------------------------------------

    def check_marker(
        self, producer_id: int, epoch: int, coordinator_epoch: int, transaction_version: int
    ) -> None:
        """Check that a transaction marker may be written: its producer epoch and coordinator epoch.

        Raises:
            KafkaError: INVALID_PRODUCER_EPOCH (47), or TRANSACTION_COORDINATOR_FENCED (52).
        """
        state = self._producers.get(producer_id)
        if state is None:
            return
        is_stale = epoch < state.epoch
        if transaction_version >= STRICT_MARKERS_SINCE and epoch == state.epoch:
            # A repeated marker does no harm. The greatest epoch has no successor, so that it may be equal.
            is_stale = producer_id in self.open and epoch != EPOCH_MAX
        if is_stale:
            raise _fenced(producer_id, epoch, state.epoch)
        if coordinator_epoch < state.coordinator_epoch:
            raise error_for(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"a marker of coordinator epoch {coordinator_epoch}, the partition has seen "
                f"{state.coordinator_epoch}",
            )

    def record_marker(
        self,
        producer_id: int,
        epoch: int,
        coordinator_epoch: int,
        is_commit: bool,
        marker_offset: int,
        timestamp: int,
        now_ms: int,
        *,
        transaction_version: int = 0,
    ) -> AbortedTransaction | None:
        """Record a marker that was written or found in the log; return the transaction that it aborts."""
        found = self._verifications.get(producer_id)
        is_of_next = found is not None and found.is_implicit and found.epoch == epoch
        if found is not None and not (is_of_next and transaction_version >= STRICT_MARKERS_SINCE):
            del self._verifications[producer_id]
        self._producers.record_marker(producer_id, epoch, coordinator_epoch, timestamp, now_ms)
        first_offset = self.open.pop(producer_id, None)
        if first_offset is None or is_commit:
            return None
        oldest = self.first_unstable_offset
        return AbortedTransaction(
            producer_id, first_offset, marker_offset, marker_offset + 1 if oldest is None else oldest
        )

    def record_emptied(self, producer_id: int, epoch: int, timestamp: int, now_ms: int) -> None:
        """Record the producer epoch of a marker batch whose record compaction has removed.

        An emptied marker ends no transaction.
        """
        state = self._producers.get(producer_id)
        coordinator_epoch = NO_COORDINATOR if state is None else state.coordinator_epoch
        self._producers.record_marker(producer_id, epoch, coordinator_epoch, timestamp, now_ms)

    def expire_verifications(self, before_ms: int) -> None:
        """Drop unused verifications that were begun before `before_ms`."""
        for producer_id, each in list(self._verifications.items()):
            if each.asked_ms < before_ms:
                del self._verifications[producer_id]


def _fenced(producer_id: int, epoch: int, newest: int) -> KafkaError:
    return error_for(
        ErrorCode.INVALID_PRODUCER_EPOCH,
        f"producer {producer_id} comes with epoch {epoch}, the partition has seen {newest}",
    )
