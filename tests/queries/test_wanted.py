"""Tests of the partitions, offsets, times and keys that a filter implies.

They include every record that passes the filter.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given
from hypothesis import strategies as st

from for_each import for_each
from penstock.queries.pushdown.arrow_filters import columns_of, wanted_by
from penstock.queries.pushdown.wanted import EVERYTHING, NOTHING, Wanted, comparison, one_of

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIELD = {name: pc.field(name) for name in ("partition", "offset", "timestamp", "key")}
DEEP = FIELD["offset"] >= 1
for _ in range(300):
    DEEP = (DEEP) | (FIELD["offset"] >= 1)


def at(ms: float) -> pa.Scalar:
    return pa.scalar(EPOCH + timedelta(milliseconds=ms), pa.timestamp("us", tz="UTC"))


@for_each(
    [
        (None, EVERYTHING),
        (FIELD["offset"] >= 5, Wanted(offset_min=5)),
        (FIELD["offset"] > 5, Wanted(offset_min=6)),
        (pc.scalar(5) > FIELD["offset"], Wanted(offset_end=5)),
        (FIELD["offset"] == -3, Wanted(offset_end=-2)),
        (FIELD["partition"] == 2, Wanted(partitions=frozenset([2]))),
        (FIELD["partition"].isin([1, 2, None]), Wanted(partitions=frozenset([1, 2]))),
        (FIELD["partition"] > 2, Wanted(partition_min=3)),
        (FIELD["partition"] <= 2, Wanted(partition_end=3)),
        ((FIELD["partition"] < 2) | (FIELD["partition"] == 5), EVERYTHING),
        ((FIELD["partition"] >= 5) & (FIELD["partition"] < 5), Wanted(partition_min=5, partition_end=5)),
        (FIELD["timestamp"] >= at(1.5), Wanted(time_min_ms=2)),
        (FIELD["timestamp"] > at(1), Wanted(time_min_ms=2)),
        (FIELD["timestamp"] <= at(1), Wanted(time_end_ms=2)),
        (FIELD["timestamp"] < at(1), Wanted(time_end_ms=1)),
        (FIELD["timestamp"] == at(7), Wanted(time_min_ms=7, time_end_ms=8)),
        (FIELD["key"] == b"a", Wanted(keys=frozenset([b"a"]))),
        (FIELD["key"].isin([b"a", None]), EVERYTHING),
        (FIELD["key"].is_null(), EVERYTHING),
        (FIELD["offset"].is_null(), NOTHING),
        (
            (FIELD["offset"] >= 5) & (FIELD["partition"] == 1) & (FIELD["offset"] <= 9),
            Wanted(frozenset([1]), 5, 10),
        ),
        ((FIELD["offset"] >= 5) | (FIELD["partition"] == 1), EVERYTHING),
        ((FIELD["offset"] == 5) | (FIELD["offset"] == 9), Wanted(offset_min=5, offset_end=10)),
        (~(FIELD["offset"] >= 5), EVERYTHING),
        (pc.field("v", "w") == 1, EVERYTHING),
        (FIELD["offset"] + 1 > 5, EVERYTHING),
        (DEEP, EVERYTHING),
    ]
)
def test_a_filter_says_which_records_may_be_wanted(filter: Any, wanted: Wanted) -> None:
    assert wanted_by(filter) == wanted


def test_the_columns_of_a_filter_are_known() -> None:
    assert columns_of((pc.field("v", "w") == 1) & ~(pc.field("a") + pc.field("b") > 2)) == {"v", "a", "b"}


def test_text_that_may_stand_for_other_bytes_says_nothing_of_keys() -> None:
    assert comparison("key", "==", "ü") == Wanted(keys=frozenset(["ü".encode()]))
    assert comparison("key", "==", "a\ufffd") == comparison("key", "==", "\ud800") == EVERYTHING
    assert comparison("key", "==", None) == one_of("offset", []) == NOTHING


RECORD = st.tuples(st.integers(0, 4), st.integers(0, 9), st.integers(0, 9), st.sampled_from([b"a", b"b"]))
OPERATORS = {"==": int.__eq__, "<": int.__lt__, "<=": int.__le__, ">": int.__gt__, ">=": int.__ge__}


@st.composite
def filters(draw: st.DrawFn, depth: int = 0) -> tuple[pc.Expression, Any]:
    """Draw a random filter, as an Arrow expression and as a function of a record."""
    if depth < 4 and draw(st.booleans()):
        (one, is_one), (other, is_other) = draw(filters(depth + 1)), draw(filters(depth + 1))
        if draw(st.booleans()):
            return one & other, lambda record: is_one(record) and is_other(record)
        return one | other, lambda record: is_one(record) or is_other(record)
    column = draw(st.sampled_from(["partition", "offset", "timestamp", "key"]))
    index = ["partition", "offset", "timestamp", "key"].index(column)
    if column == "key":
        value = draw(st.sampled_from([b"a", b"b"]))
        return FIELD["key"] == value, lambda record: record[index] == value
    operator, number = draw(st.sampled_from(list(OPERATORS))), draw(st.integers(-2, 11))
    compare = OPERATORS[operator]
    literal = at(number) if column == "timestamp" else pa.scalar(number)
    made = {
        "==": FIELD[column] == literal, "<": FIELD[column] < literal, "<=": FIELD[column] <= literal,
        ">": FIELD[column] > literal, ">=": FIELD[column] >= literal,
    }[operator]  # fmt: skip
    return made, lambda record: compare(record[index], number)


@given(filters(), st.lists(RECORD, max_size=30))
def test_no_record_that_a_filter_lets_through_is_unwanted(made: Any, records: list[Any]) -> None:
    expression, lets_through = made
    wanted = wanted_by(expression)
    for record in filter(lets_through, records):
        partition, offset, time_ms, key = record
        assert not wanted.is_nothing
        assert wanted.partitions is None or partition in wanted.partitions
        assert wanted.offset_min <= offset
        assert wanted.offset_end is None or offset < wanted.offset_end
        assert wanted.time_min_ms is None or wanted.time_min_ms <= time_ms
        assert wanted.time_end_ms is None or time_ms < wanted.time_end_ms
        assert wanted.keys is None or key in wanted.keys
