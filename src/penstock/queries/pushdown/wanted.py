"""The set of records that a filter may select: partitions, offsets, times and keys. No I/O, no libraries.

A `Wanted` is a superset: it has every record that the filter selects. Readers apply the filter again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TypeVar

T = TypeVar("T")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

CLIPPED_US = ((1 << 63) // 1000 - 1) * 1000
"""The greatest timestamp in microseconds that columns can have; later ones are clipped to it. A comparison
with such a time selects all records.
"""


@dataclass(frozen=True)
class Wanted:
    """The set of records that a filter may select. Upper bounds are exclusive; None means no bound."""

    partitions: frozenset[int] | None = None
    offset_min: int = 0
    offset_end: int | None = None
    time_min_ms: int | None = None
    time_end_ms: int | None = None
    keys: frozenset[bytes] | None = None
    """The keys that the records may have (never null), or None if records may have any key or none."""
    topics: frozenset[str] | None = None
    partition_min: int = 0
    partition_end: int | None = None

    @property
    def is_nothing(self) -> bool:
        """True if the set is empty."""
        return (
            (self.offset_end is not None and self.offset_end <= self.offset_min)
            or (self.partition_end is not None and self.partition_end <= self.partition_min)
            or (
                self.time_end_ms is not None
                and self.time_min_ms is not None
                and self.time_end_ms <= self.time_min_ms
            )
            or any(one is not None and not one for one in (self.partitions, self.keys, self.topics))
        )

    def both(self, other: Wanted) -> Wanted:
        """Return the intersection of this set and another one, for ``and``."""
        return Wanted(
            _both(self.partitions, other.partitions),
            max(self.offset_min, other.offset_min),
            _known(min, self.offset_end, other.offset_end),
            _known(max, self.time_min_ms, other.time_min_ms),
            _known(min, self.time_end_ms, other.time_end_ms),
            _both(self.keys, other.keys),
            _both(self.topics, other.topics),
            max(self.partition_min, other.partition_min),
            _known(min, self.partition_end, other.partition_end),
        )

    def either(self, other: Wanted) -> Wanted:
        """Return the smallest `Wanted` that contains this set and another one, for ``or``."""
        if self.is_nothing or other.is_nothing:
            return other if self.is_nothing else self
        return Wanted(
            _either(self.partitions, other.partitions),
            min(self.offset_min, other.offset_min),
            _all(max, self.offset_end, other.offset_end),
            _all(min, self.time_min_ms, other.time_min_ms),
            _all(max, self.time_end_ms, other.time_end_ms),
            _either(self.keys, other.keys),
            _either(self.topics, other.topics),
            min(self.partition_min, other.partition_min),
            _all(max, self.partition_end, other.partition_end),
        )

    def partitions_among(self, numbers: Iterable[int]) -> set[int]:
        """Return the partition numbers in `numbers` that belong to the set."""
        end = self.partition_end
        return {
            number
            for number in numbers
            if number >= self.partition_min
            and (end is None or number < end)
            and (self.partitions is None or number in self.partitions)
        }


EVERYTHING = Wanted()
NOTHING = Wanted(partitions=frozenset())


def comparison(column: str, operator: str, value: object) -> Wanted:
    """Return the set of records for which ``column operator value`` may be true.

    The operator is ``==``, ``<``, ``<=``, ``>`` or ``>=``. The result is `EVERYTHING` if the comparison does
    not limit what has to be read. A comparison with null selects no record.
    """
    if value is None:
        return NOTHING
    found = _numbers(column, operator, value) if column in ("partition", "offset", "timestamp") else None
    if found is not None:
        return found
    if operator == "==" and column == "key" and isinstance(value, (bytes, str)):
        key = _key(value)
        return EVERYTHING if key is None else Wanted(keys=frozenset([key]))
    if operator == "==" and column == "topic" and isinstance(value, str):
        return Wanted(topics=frozenset([value]))
    return EVERYTHING


def one_of(column: str, values: Iterable[object]) -> Wanted:
    """Return the set of records whose column may equal one of `values`; a null there selects nothing."""
    found = NOTHING
    for value in values:
        found = found.either(comparison(column, "==", value))
        if found == EVERYTHING:
            break
    return found


def is_null(column: str) -> Wanted:
    """Return the set of records whose column may be null: only keys and values can be null."""
    return NOTHING if column in ("partition", "offset", "topic", "timestamp") else EVERYTHING


def microseconds(value: object) -> int | None:
    """Return microseconds since 1970 for a datetime with a time zone, None for any other value."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        return (value - _EPOCH) // _MICROSECOND
    return None


def _key(value: bytes | str) -> bytes | None:
    """Return the bytes of a key, or None if its text has U+FFFD, which may stand for any invalid bytes."""
    if isinstance(value, bytes):
        return value
    try:
        return None if "\ufffd" in value else value.encode()
    except UnicodeEncodeError:
        return None


def _numbers(column: str, operator: str, value: object) -> Wanted | None:
    if column == "timestamp":
        us = microseconds(value)
        return None if us is None else _times(operator, us)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    first, end = _interval(operator, value)
    if column == "offset":
        return Wanted(offset_min=max(0, first or 0), offset_end=end)
    if operator == "==":
        return Wanted(partitions=frozenset([value]))
    return Wanted(partition_min=max(0, first or 0), partition_end=end)


def _interval(operator: str, value: int) -> tuple[int | None, int | None]:
    """Return (first, end) of the integers that satisfy ``operator value``; None means no bound."""
    return {
        "==": (value, value + 1),
        "<": (None, value),
        "<=": (None, value + 1),
        ">": (value + 1, None),
        ">=": (value, None),
    }[operator]


def _times(operator: str, us: int) -> Wanted:
    if not -CLIPPED_US < us < CLIPPED_US:
        return EVERYTHING
    first, end = _interval(operator, us)
    # Records have whole milliseconds: the first one that is not before, and the first that is not inside.
    return Wanted(
        time_min_ms=None if first is None else -(-first // 1000),
        time_end_ms=None if end is None else -(-end // 1000),
    )


def _known(choose: Callable[[T, T], T], one: T | None, other: T | None) -> T | None:
    if one is None or other is None:
        return other if one is None else one
    return choose(one, other)


def _all(choose: Callable[[T, T], T], one: T | None, other: T | None) -> T | None:
    return None if one is None or other is None else choose(one, other)


def _both(one: frozenset[T] | None, other: frozenset[T] | None) -> frozenset[T] | None:
    if one is None or other is None:
        return other if one is None else one
    return one & other


def _either(one: frozenset[T] | None, other: frozenset[T] | None) -> frozenset[T] | None:
    return None if one is None or other is None else one | other


def on_topic(wanted: Wanted, topic: str) -> Wanted:
    """Return the part of `wanted` within one topic: `NOTHING` if the set has only other topics."""
    if wanted.topics is not None and topic not in wanted.topics:
        return NOTHING
    return replace(wanted, topics=None)
