"""A map from offsets to small numbers, such as delivery counts, stored as runs: ranges with one value."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple


class ValueRun(NamedTuple):
    """A run: the offsets from `first` to `last`, both inclusive, and their common value."""

    first: int
    last: int
    value: int

    @property
    def size(self) -> int:
        """The number of offsets in this run."""
        return self.last - self.first + 1


class RunMap:
    """A map from offsets to values, stored as disjoint runs in order.

    Adjacent runs of equal value are merged.
    """

    __slots__ = ("_firsts", "_lasts", "_values", "size")

    def __init__(self, runs: Iterable[ValueRun] = ()) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []
        self._values: list[int] = []
        self.size = 0
        """The number of offsets that have a value."""
        for run in runs:
            self.put(*run)

    def __bool__(self) -> bool:
        return self.size > 0

    def __iter__(self) -> Iterator[ValueRun]:
        return map(ValueRun, self._firsts, self._lasts, self._values)

    def put(self, first: int, last: int, value: int) -> None:
        """Set the value of the offsets from `first` to `last`, and replace their old values."""
        if last < first:
            return
        firsts, lasts, values = self._firsts, self._lasts, self._values
        if not firsts or first > lasts[-1]:
            at = len(firsts)
        else:
            self.remove(first, last)
            at = bisect_left(firsts, first)
        self.size += last - first + 1
        if at and lasts[at - 1] == first - 1 and values[at - 1] == value:
            at -= 1
            lasts[at] = last
        else:
            firsts.insert(at, first)
            lasts.insert(at, last)
            values.insert(at, value)
        if at + 1 < len(firsts) and firsts[at + 1] == last + 1 and values[at + 1] == value:
            lasts[at] = lasts.pop(at + 1)
            del firsts[at + 1], values[at + 1]

    def remove(self, first: int, last: int) -> list[ValueRun]:
        """Remove the values of these offsets; return the runs that were removed."""
        begin, end = self._overlap(first, last)
        if begin == end:
            return []
        firsts, lasts, values = self._firsts, self._lasts, self._values
        gone = [
            ValueRun(max(firsts[at], first), min(lasts[at], last), values[at]) for at in range(begin, end)
        ]
        kept = [
            run
            for run in (
                ValueRun(firsts[begin], first - 1, values[begin]),
                ValueRun(last + 1, lasts[end - 1], values[end - 1]),
            )
            if run.size > 0
        ]
        firsts[begin:end] = [run.first for run in kept]
        lasts[begin:end] = [run.last for run in kept]
        values[begin:end] = [run.value for run in kept]
        self.size -= sum(run.size for run in gone)
        return gone

    def within(self, first: int, last: int) -> list[ValueRun]:
        """Return the runs between two offsets. Runs that go beyond the two offsets are cut."""
        begin, end = self._overlap(first, last)
        return [
            ValueRun(max(self._firsts[at], first), min(self._lasts[at], last), self._values[at])
            for at in range(begin, end)
        ]

    def covers(self, first: int, last: int) -> bool:
        """Return True if every offset from `first` to `last` has a value."""
        return sum(run.size for run in self.within(first, last)) == last - first + 1

    def take(self) -> list[ValueRun]:
        """Remove all runs from the map, and return them."""
        runs = list(self)
        self._firsts, self._lasts, self._values, self.size = [], [], [], 0
        return runs

    def _overlap(self, first: int, last: int) -> tuple[int, int]:
        """Return the first and the last index (exclusive) of the runs that overlap these offsets."""
        return bisect_left(self._lasts, first), bisect_right(self._firsts, last)
