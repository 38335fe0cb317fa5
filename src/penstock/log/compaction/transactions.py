"""Transactions in compaction: finds aborted batches, and markers whose transactions have no batch left.

Records of an aborted transaction are removed at once, and do not replace earlier records with their keys. A
marker is kept as long as the log has a batch of its transaction. When a pass finds no such batch, the marker
is kept for `delete.retention.ms`, like a tombstone, and then removed. The rules are Kafka's
(`CleanedTransactionMetadata`).

Only offsets below the last stable offset are examined, so that the outcome of each transaction is decided.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from penstock.errors import CorruptRecordError
from penstock.records.batch import ABORT_MARKER, COMMIT_MARKER, read_marker
from penstock.records.format.batch_header import BatchHeader


class Aborted(NamedTuple):
    """An aborted transaction: readers skip its producer's batches from its first offset to its marker."""

    producer_id: int
    first_offset: int
    marker_offset: int


class BatchFate(Enum):
    """The ways in which compaction treats a batch because of its transaction."""

    BY_KEY = 0
    """Each record is kept unless a later record has its key."""
    ABORTED = 1
    """The batch belongs to an aborted transaction: all its records are removed."""
    NEEDED = 2
    """The batch is a marker whose transaction still has batches: it is kept unchanged."""
    SPENT = 3
    """The batch is a marker whose transaction has no batch left: it is removed after
    `delete.retention.ms`."""


class TransactionsOfPass:
    """Tracks transactions while compaction reads a log once, to decide how to treat each batch."""

    def __init__(self, aborted: Iterable[Aborted], start_offset: int) -> None:
        self._spans: dict[int, tuple[list[int], list[int]]] = {}
        """A dict from producer id to the first offsets and the marker offsets of its aborted transactions,
        both ascending."""
        for one in sorted(aborted, key=lambda one: one.marker_offset):
            if one.marker_offset >= start_offset:
                firsts, markers = self._spans.setdefault(one.producer_id, ([], []))
                firsts.append(one.first_offset)
                markers.append(one.marker_offset)
        self._with_data: set[int] = set()
        """The marker offsets of those aborted transactions that had a batch in this pass."""
        self._committing: set[int] = set()
        """The producer ids of transactions that had a batch in this pass and are not aborted, until their
        commit marker is reached."""
        self.spent: set[int] = set()
        """The marker offsets of those aborted transactions that had no batch in this pass."""

    def abort_of(self, producer_id: int, offset: int) -> int | None:
        """Return the offset of the marker that aborted a producer's batch at `offset`, or None."""
        spans = self._spans.get(producer_id)
        if spans is None:
            return None
        firsts, markers = spans
        number = bisect_right(firsts, offset) - 1
        return markers[number] if number >= 0 and offset < markers[number] else None

    def fate_of(self, batch: bytes, header: BatchHeader) -> BatchFate:
        """Return the treatment of a batch in compaction. Call this once for each batch, in log order."""
        producer_id = header.producer_id
        if header.is_control:
            return self._fate_of_marker(batch, header)
        if not header.is_transactional:
            return BatchFate.BY_KEY
        marker = self.abort_of(producer_id, header.base_offset)
        if marker is None:
            self._committing.add(producer_id)
            return BatchFate.BY_KEY
        self._with_data.add(marker)
        return BatchFate.ABORTED

    def _fate_of_marker(self, batch: bytes, header: BatchHeader) -> BatchFate:
        if not header.record_count:
            return BatchFate.SPENT
        try:
            kind, _ = read_marker(batch, 0, header.size)
        except CorruptRecordError:
            return BatchFate.NEEDED
        if kind == ABORT_MARKER:
            if header.base_offset in self._with_data:
                return BatchFate.NEEDED
            self.spent.add(header.base_offset)
            return BatchFate.SPENT
        if kind == COMMIT_MARKER:
            if header.producer_id in self._committing:
                self._committing.remove(header.producer_id)
                return BatchFate.NEEDED
            return BatchFate.SPENT
        return BatchFate.NEEDED
