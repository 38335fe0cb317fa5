"""Find the batches of aborted transactions, which a reader of committed data skips (KIP-98).

A fetch response lists the aborted transactions that overlap its data: the producer id and first offset of
each. Every transactional batch of that producer id, from that offset up to the producer's abort marker, is
skipped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable


class AbortedTransactions:
    """The aborted transactions that a fetch response lists, to find the batches that a reader must skip.

    Call `is_aborted` for each batch, in offset order.
    """

    __slots__ = ("_active", "_upcoming")

    def __init__(self, aborted: Iterable[tuple[int, int]]) -> None:
        """Store the aborted transactions of a response: pairs of (producer id, first offset) in any order."""
        self._upcoming = deque(sorted((first_offset, producer_id) for producer_id, first_offset in aborted))
        self._active: set[int] = set()

    def is_aborted(self, producer_id: int, last_offset: int) -> bool:
        """Return True if the transactional batch of `producer_id` that ends at `last_offset` was aborted."""
        self._advance(last_offset)
        return producer_id in self._active

    def end_transaction(self, producer_id: int, offset: int) -> None:
        """Record the abort marker at `offset`: later batches of its producer belong to a new transaction."""
        self._advance(offset)
        self._active.discard(producer_id)

    def _advance(self, offset: int) -> None:
        while self._upcoming and self._upcoming[0][0] <= offset:
            self._active.add(self._upcoming.popleft()[1])
