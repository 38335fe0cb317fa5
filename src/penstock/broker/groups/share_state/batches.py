"""Ranges of records with their delivery states, and the merging of newer ranges into older ones (KIP-932)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush
from typing import NamedTuple

KEEPS_START = -1
"""The start offset in an update that does not change the stored start offset: -1."""


class StateBatch(NamedTuple):
    """A range of offsets, both bounds included, whose records have the same delivery state and count."""

    first_offset: int
    last_offset: int
    state: int
    deliveries: int
    """The delivery count of each record in the range."""


def combine(
    older: Sequence[StateBatch], newer: Iterable[StateBatch], start_offset: int
) -> tuple[StateBatch, ...]:
    """Merge `newer` ranges into `older` ones; return ranges that do not overlap, in order of offsets.

    `older` must be empty or a result of this function.

    If a record has two states, the one with the higher delivery count wins, then the one with the higher
    state, so that no record returns to an earlier state. Records below `start_offset` are dropped; -1 drops
    nothing. Adjacent ranges with equal state and delivery count are joined.
    """
    added = [each for each in newer if each.last_offset >= start_offset]
    kept = list(older[bisect_left(older, start_offset, key=_last) :])
    if kept and kept[0].first_offset < start_offset:
        kept[0] = kept[0]._replace(first_offset=start_offset)
    if not added:
        return tuple(kept)
    # Most writes touch few of very many ranges: only those that may change, or become one, are looked at.
    first = bisect_left(kept, min(each.first_offset for each in added) - 1, key=_last)
    last = bisect_right(kept, max(map(_last, added)) + 1, key=lambda each: each.first_offset)
    found: list[StateBatch] = []
    for start, end, batch in _pieces([*kept[first:last], *added], start_offset):
        before = found[-1] if found else None
        if before is not None and before.last_offset + 1 == start and _rank(before) == _rank(batch):
            found[-1] = before._replace(last_offset=end)
        else:
            found.append(StateBatch(start, end, batch.state, batch.deliveries))
    return (*kept[:first], *found, *kept[last:])


def _last(batch: StateBatch) -> int:
    return batch.last_offset


def _rank(batch: StateBatch) -> tuple[int, int]:
    return batch.deliveries, batch.state


def _pieces(ranges: list[StateBatch], start_offset: int) -> Iterator[tuple[int, int, StateBatch]]:
    """Split overlapping ranges at their bounds; yield (first, last, range that wins) for each part.

    The range with the highest delivery count wins, then the one with the highest state.
    """
    ranges.sort()
    edges = sorted(
        {max(each.first_offset, start_offset) for each in ranges} | {each.last_offset + 1 for each in ranges}
    )
    covering: list[tuple[int, int, int, StateBatch]] = []
    position = 0
    for number, edge in enumerate(edges[:-1]):
        while position < len(ranges) and ranges[position].first_offset <= edge:
            batch = ranges[position]
            heappush(covering, (-batch.deliveries, -batch.state, position, batch))
            position += 1
        while covering and covering[0][3].last_offset < edge:
            heappop(covering)
        if covering:
            yield edge, edges[number + 1] - 1, covering[0][3]
