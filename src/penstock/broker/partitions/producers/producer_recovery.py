"""Recovery of a log's producer states and transactions from a snapshot and the batches after it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from penstock.broker.partitions.producers.producer_state import Producers
from penstock.broker.partitions.producers.transactions import AbortedTransaction, Transactions
from penstock.errors import CorruptRecordError
from penstock.records.batch import ABORT_MARKER, COMMIT_MARKER, read_marker

if TYPE_CHECKING:
    from penstock.log.contract import Log
    from penstock.records.format.batch_header import BatchHeader


class RecoveredProducers(NamedTuple):
    """The result of `read_producers`: transactions and the number of batches read from the log."""

    transactions: Transactions
    aborted: list[AbortedTransaction]
    """The aborted transactions whose markers were read, in the order of the markers."""
    batches: int
    """The number of batches that were read."""


def read_producers(
    log: Log, producers: Producers, from_offset: int, uptime_ms: int, batches_max: int | None = None
) -> RecoveredProducers | None:
    """Update `producers`, the states at `from_offset`, with all batches up to the end of the log.

    Returns None if the log has `batches_max` batches or more from `from_offset` on.

    Raises:
        StorageError: the log cannot be read.
    """
    transactions = Transactions(producers)
    aborted: list[AbortedTransaction] = []
    looked_at = 0
    for header in log.iter_batch_headers(from_offset):
        looked_at += 1
        if looked_at == batches_max:
            return None
        if header.producer_id < 0:
            continue
        entry = read_batch(log, header, producers, transactions, uptime_ms)
        if entry is not None:
            aborted.append(entry)
    return RecoveredProducers(transactions, aborted, looked_at)


def read_batch(
    log: Log, header: BatchHeader, producers: Producers, transactions: Transactions, uptime_ms: int
) -> AbortedTransaction | None:
    """Update the state of a batch's producer; return the transaction that the batch aborts, or None.

    Raises:
        StorageError: the log cannot be read.
    """
    if header.is_control:
        return _read_control(log, header, transactions, uptime_ms)
    producers.record_batch(header, header.base_offset, header.max_timestamp, uptime_ms)
    if header.is_transactional:
        transactions.record_data(header.producer_id, header.base_offset)
    return None


def _read_control(
    log: Log, header: BatchHeader, transactions: Transactions, uptime_ms: int
) -> AbortedTransaction | None:
    """Update a producer's state from a transaction marker, or only the epoch if compaction emptied it.

    A malformed marker changes nothing.
    """
    if not header.record_count:
        transactions.record_emptied(
            header.producer_id, header.producer_epoch, header.max_timestamp, uptime_ms
        )
        return None
    batch = log.read(header.base_offset, 1, at_least_one=True).to_bytes()
    try:
        kind, coordinator_epoch = read_marker(batch, 0, header.size)
    except CorruptRecordError:
        return None
    if kind not in (ABORT_MARKER, COMMIT_MARKER):
        return None
    return transactions.record_marker(
        header.producer_id,
        header.producer_epoch,
        coordinator_epoch,
        kind == COMMIT_MARKER,
        header.base_offset,
        header.max_timestamp,
        uptime_ms,
    )
