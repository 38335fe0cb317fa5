"""Transactions under compaction: find aborted batches, and markers whose transactions have no batch left.

Records of an aborted transaction are removed at once, and their keys remove nothing. A marker is kept as long
as the log has a batch of its transaction. After a pass that finds none, the marker is kept for
`delete.retention.ms`, as a tombstone is, and is then removed. The rules are Kafka's
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
    """An aborted transaction: the batches of its producer at offsets [first, marker) are not read."""

    producer_id: int
    first_offset: int
    marker_offset: int


class BatchFate(Enum):
    """The ways in which compaction may treat a batch."""

    BY_KEY = 0
    """Each record is kept unless a later record has its key."""
    ABORTED = 1
    """All records are removed."""
    NEEDED = 2
    """The batch is a marker whose transaction still has batches: it is kept unchanged."""
    SPENT = 3
    """The batch is a marker whose transaction has no known batches: removed after `delete.retention.ms`."""


class TransactionsOfPass:
    """The state of transactions during one pass of compaction over a log, from a first offset on."""

    def __init__(self, aborted: Iterable[Aborted], start_offset: int) -> None:
        self._spans: dict[int, tuple[list[int], list[int]]] = {}
        """By producer id, the first offsets and the marker offsets of aborted transactions, ascending."""
        for one in sorted(aborted, key=lambda one: one.marker_offset):
            if one.marker_offset >= start_offset:
                firsts, markers = self._spans.setdefault(one.producer_id, ([], []))
                firsts.append(one.first_offset)
                markers.append(one.marker_offset)
        self._with_data: set[int] = set()
        """Offsets of the markers of aborted transactions that have a batch in this pass."""
        self._committing: set[int] = set()
        """Producer ids with a batch of a committed transaction whose marker was not reached yet."""
        self.spent: set[int] = set()
        """Offsets of the markers of aborted transactions that have no batch in this pass."""

    def abort_of(self, producer_id: int, offset: int) -> int | None:
        """Return the offset of the marker that aborted a producer's batch at `offset`, or None."""
        spans = self._spans.get(producer_id)
        if spans is None:
            return None
        firsts, markers = spans
        number = bisect_right(firsts, offset) - 1
        return markers[number] if number >= 0 and offset < markers[number] else None

    def fate_of(self, batch: bytes, header: BatchHeader) -> BatchFate:
        """Return how compaction may treat a batch. Call it once for each batch, in log order."""
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
