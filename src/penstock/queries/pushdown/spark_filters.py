"""Filters of a batch query as what they say of the place of records: Spark 4.1 and later hands them over.

Spark applies every filter again, so that a filter of which nothing follows costs nothing but reading.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from penstock.model import OffsetRange, TopicPartition
from penstock.queries.pushdown.wanted import (
    EVERYTHING,
    NOTHING,
    Wanted,
    comparison,
    is_null,
    on_topic,
    one_of,
)

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter

OPERATORS = {
    "EqualTo": "==",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
}
Lookup = Callable[[Mapping[TopicPartition, int]], Mapping[TopicPartition, int | None]]
"""Finds the first offset of a time in milliseconds; None where no record is that late."""

PLACES = ("partition", "offset", "timestamp", "topic")


def wanted_by(filters: Iterable[Filter]) -> Wanted:
    """What filters, all of which have to hold, say of records' places."""
    wanted = EVERYTHING
    for one in filters:
        wanted = wanted.both(_wanted(one))
    return wanted


def _wanted(one: Filter) -> Wanted:
    """By the names of Spark's classes, of which older releases have none."""
    kind = type(one).__name__
    attribute: Sequence[str] = getattr(one, "attribute", ())
    if len(attribute) != 1 or attribute[0] not in PLACES:
        return EVERYTHING
    column, value = attribute[0], getattr(one, "value", None)
    if kind in OPERATORS:
        return comparison(column, OPERATORS[kind], value)
    if kind == "EqualNullSafe":
        return EVERYTHING if value is None else comparison(column, "==", value)
    if kind == "In" and isinstance(value, (tuple, list)):
        return one_of(column, value)
    if kind == "IsNull":
        return is_null(column) if column != "timestamp" else EVERYTHING
    return EVERYTHING


def narrowed(ranges: Iterable[OffsetRange], wanted: Wanted, lookup: Lookup) -> list[OffsetRange]:
    """The parts of ranges in which records may be wanted.

    A time that begins is looked up: all records before the offset found are older. One that ends says
    nothing, since late records may lie behind it.
    """
    left: list[OffsetRange] = []
    for one in ranges:
        mine = on_topic(wanted, one.topic)
        is_there = mine.partitions is None or one.partition in mine.partitions
        if mine == NOTHING or mine.is_nothing or not is_there:
            continue
        end = one.end if mine.offset_end is None else min(one.end, mine.offset_end)
        start = max(one.start, mine.offset_min)
        if start < end:
            left.append(one._replace(start=start, end=end))
    if wanted.time_min_ms is None or wanted.time_min_ms < 0 or not left:
        return left
    at = lookup({TopicPartition(one.topic, one.partition): wanted.time_min_ms for one in left})
    return [one for one in _from_times(left, at) if one.size > 0]


def _from_times(
    ranges: Iterable[OffsetRange], at: Mapping[TopicPartition, int | None]
) -> Iterable[OffsetRange]:
    for one in ranges:
        tp = TopicPartition(one.topic, one.partition)
        if tp not in at:
            yield one  # it is gone, which reading says
            continue
        first = at[tp]
        yield one._replace(start=one.end if first is None else max(one.start, first))
