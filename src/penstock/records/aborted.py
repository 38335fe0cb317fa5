"""Which batches a reader of committed data leaves out (KIP-98).

The broker lists, with a fetch, the aborted transactions that touch the data: producer id and first
offset each. What such a producer wrote in transactions from there on, up to its abort marker, never
happened.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable


class AbortedTransactions:
    """Walks along with the batches, in offset order, and returns which to skip."""

    __slots__ = ("_active", "_upcoming")

    def __init__(self, aborted: Iterable[tuple[int, int]]) -> None:
        """`aborted` holds (producer id, first offset) pairs, in any order."""
        self._upcoming = deque(sorted((first_offset, producer_id) for producer_id, first_offset in aborted))
        self._active: set[int] = set()

    def is_aborted(self, producer_id: int, last_offset: int) -> bool:
        """Return whether the transactional batch of `producer_id` that ends at `last_offset` was aborted."""
        self._advance(last_offset)
        return producer_id in self._active

    def end_transaction(self, producer_id: int, offset: int) -> None:
        """Take note of an abort marker at `offset`: what the producer writes next is a new transaction."""
        self._advance(offset)
        self._active.discard(producer_id)

    def _advance(self, offset: int) -> None:
        while self._upcoming and self._upcoming[0][0] <= offset:
            self._active.add(self._upcoming.popleft()[1])
