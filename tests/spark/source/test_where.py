"""Tests of the option `where`: its syntax, the partitions and offsets it selects, and the rows it accepts."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

import duckdb
import pyarrow as pa
import pytest

from for_each import for_each
from penstock.errors import ConfigError
from penstock.model import OffsetRange, TopicPartition
from penstock.queries.pushdown.wanted import EVERYTHING, NOTHING, Wanted
from penstock.spark.source.planning import narrowed_ranges
from penstock.spark.source.where.condition import Where
from penstock.spark.source.where.sql import DEPTH_MAX, parsed_where
from penstock.spark.source.where.times import moment

T0 = datetime(2026, 11, 1, tzinfo=UTC)
T0_MS = int(T0.timestamp()) * 1000

RECORDS = pa.record_batch(
    {
        "topic": pa.array(["a", "a", "b", "b"]),
        "partition": pa.array([0, 1, 2, 2], pa.int32()),
        "offset": pa.array([0, 1, 2, 2**40], pa.int64()),
        "timestamp": pa.array([T0_MS - 1, T0_MS, T0_MS + 1, T0_MS + 2], pa.timestamp("ms", "UTC")).cast(
            pa.timestamp("us", "UTC")
        ),
        "timestampType": pa.array([0, 0, 1, -1], pa.int32()),
        "key": pa.array([b"a", b"", None, b"\xff"], pa.binary()),
        "value": pa.array([None, b"x", b"\x00", b"it's"], pa.binary()),
    }
)

ROWS = {
    "partition = 1": [1],
    "1 = partition": [1],
    "PARTITION <> 1": [0, 2, 3],
    "partition != 1": [0, 2, 3],
    "partition == -1": [],
    "2 <= partition": [2, 3],
    "partition in (0, 2)": [0, 2, 3],
    "partition not in (0, 2)": [1],
    "partition in (0, null)": [0],
    "partition not in (0, null)": [],
    "`offset` > 1": [2, 3],
    "offset between 1 and 2": [1, 2],
    "offset not between 1 and 2": [0, 3],
    "not (offset between 1 and 2 and partition = 1)": [0, 2, 3],
    "offset < 99999999999999999999": [0, 1, 2, 3],
    "offset > -99999999999999999999 and offset in (99999999999999999999, 2)": [2],
    "offset = 99999999999999999999": [],
    "timestamp >= '2026-11-01'": [1, 2, 3],
    "timestamp > date '2026-11-01'": [2, 3],
    "timestamp = timestamp '2026-11-01 01:00:00+01:00'": [1],
    "timestamp between '2026-11-01 00:00:00.001Z' and '2026-11-01T00:00:00.0015 UTC'": [2],
    "timestamp in ('2026-11-01', '2026-11-01 00:00:00.002')": [1, 3],
    "timestamp < '2026-11-01 01:00:00 Europe/Berlin'": [0],
    "timestampType = 1": [2],
    "topic = 'b'": [2, 3],
    "topic in ('a', 'c')": [0, 1],
    "topic < 'b'": [0, 1],
    "key is null": [2],
    "key is not null": [0, 1, 3],
    "key = 'a'": [0],
    "key >= X'ff'": [3],
    "key = X''": [1],
    "key <=> null": [2],
    "key <=> 'a'": [0],
    "not (key <=> 'a')": [1, 2, 3],
    "key is distinct from 'a'": [1, 2, 3],
    "not key = 'a'": [1, 3],
    "key = null": [],
    "key = null or partition = 0": [0],
    "not (key = null and partition = 0)": [1, 2, 3],
    "value is null or key > X'00' -- a comment": [0, 3],
    "((partition = (0)))": [0],
    "true": [0, 1, 2, 3],
    "partition = 0 and null": [],
    "! (partition = 0)": [1, 2, 3],
}


@for_each(ROWS)
def test_rows_are_those_for_which_the_condition_is_true(text: str) -> None:
    where = pickle.loads(pickle.dumps(parsed_where(text)))
    numbered = RECORDS.append_column("row", pa.array(range(RECORDS.num_rows)))
    assert where.filtered(numbered).column("row").to_pylist() == ROWS[text]


PLACES: dict[str, Wanted] = {
    "partition = 1 and offset >= 5": Wanted(partitions=frozenset([1]), offset_min=5),
    "partition in (1, 3)": Wanted(partitions=frozenset([1, 3])),
    "not (offset < 5 or offset > 9)": Wanted(offset_min=5, offset_end=10),
    "timestamp >= '2026-11-01'": Wanted(time_min_ms=T0_MS),
    "timestamp > '2026-11-01' and value is not null": Wanted(time_min_ms=T0_MS + 1),
    "topic = 'a'": Wanted(topics=frozenset(["a"])),
    "partition = null": NOTHING,
    "offset is null": NOTHING,
    "false": NOTHING,
    "partition <> 1": EVERYTHING,
    "partition = 1 or value is null": EVERYTHING,
    "not partition in (1)": EVERYTHING,
}


@for_each(PLACES)
def test_places_that_are_read(text: str) -> None:
    assert parsed_where(text).wanted == PLACES[text]


REFUSED = {
    "": "where is empty",
    "offset in (select 1)": "cannot decide a subquery: offset IN",
    "exists (select 1)": "cannot decide a",
    "timestamp > now()": "cannot decide a function",
    "timestamp > current_timestamp()": "cannot decide a function",
    "timestamp_millis(5) < timestamp": "cannot decide a function",
    "length(value) > 3": "cannot decide a function",
    "offset % 7 = 1": "cannot decide offset % 7",
    "partition = offset": "not with offset",
    "topic like 'a%'": "cannot decide",
    "topic rlike 'a'": "cannot decide",
    "partition": "cannot decide partition",
    "1 = 1": "cannot decide 1 = 1",
    "t.offset = 1": "cannot decide t.offset",
    "offset between symmetric 1 and 3": "cannot decide",
    "partition in ()": "cannot decide",
    "cast(offset as int) = 1": "cannot decide",
    "offset = ?": "not with ?",
    "timestamp > '2026-11-01' - interval 1 day": "cannot decide",
    "timestamp > timestamp_ntz '2026-11-01'": "cannot decide",
    "topic = 'it''s'": "cannot decide",
    "offset > 10.5": "offset is compared with whole numbers, not with 10.5",
    "offset > 1e3": "whole numbers",
    "offset > '5'": "whole numbers, not with '5'",
    f"offset > {'9' * 39}": "whole numbers",
    "topic = 5": "texts in quotes",
    "key = 5": "texts in quotes and bytes",
    "key = X'0'": "bytes such as X'00ff'",
    "timestamp > 1700000000": "times in quotes",
    "timestamp > date '2026-11-01 10:00'": "times in quotes",
    "timestamp > 'yesterday'": "no time here",
    "timestamp > '2026-11'": "no time here",
    "timestamp > '2026-11-01 10:00 UTC'": "no time here",
    "timestamp > '2026-02-30'": "there is no time '2026-02-30'",
    "timestamp > '2026-11-01 25:00'": "there is no time",
    "timestamp > '2026-11-01 10:00:00+19:00'": "no zone '+19:00'",
    "timestamp > '2026-11-01 10:00:00 Europe/Nowhere'": "'Europe/Nowhere' is not known here",
    "colour = 5": "no column 'colour' here",
    "headers is null": "no column 'headers' here",
    "offset > 5 limit 3": "no condition in SQL",
    "partition = 1 or": "no condition in SQL",
    "partition = 1; drop": "one condition, without a semicolon",
    r"topic = 'a\n'": "backslash",
    "select 1": "cannot decide a subquery",
    "'": "no condition in SQL",
    f"partition = {'(' * 3000}1{')' * 3000}": "where",
    " and ".join(["partition = 1"] * (DEPTH_MAX + 2)): "nested too deep",
    "offset in (" + ", ".join(map(str, range(30_000))) + ")": "characters; there may be",
}


@for_each(REFUSED)
def test_what_cannot_be_decided_is_refused(text: str) -> None:
    with pytest.raises(ConfigError) as error:
        parsed_where(text)
    assert REFUSED[text] in str(error.value)
    assert len(str(error.value)) < 700


def test_as_many_conditions_as_there_may_be_work() -> None:
    text = " or ".join(f"offset = {number}" for number in range(DEPTH_MAX))
    where = pickle.loads(pickle.dumps(parsed_where(text)))
    assert where.wanted == Wanted(offset_end=DEPTH_MAX)
    assert where.filtered(RECORDS).num_rows == 3
    many = parsed_where("offset in (" + ", ".join(map(str, range(15_000))) + ")")
    assert many.wanted == Wanted(offset_end=15_000)
    assert many.filtered(RECORDS).num_rows == 3


def test_zones_are_named_or_the_sessions_is_utc() -> None:
    named = parsed_where("timestamp > '2026-11-01 00:00:00 Europe/Berlin'")
    named.check_zone(None)
    bare = parsed_where("partition = 0 and (offset > 1 or timestamp > '2026-11-01')")
    bare.check_zone("UTC")
    with pytest.raises(ConfigError, match="timeZone is Asia/Tokyo: name the zone in the time"):
        bare.check_zone("Asia/Tokyo")
    with pytest.raises(ConfigError, match="timeZone is not set"):
        bare.check_zone(None)


def test_hours_that_zones_skip_and_repeat() -> None:
    skipped, moved = moment("2026-03-29 02:30:00 Europe/Berlin"), moment("2026-03-29 01:30:00Z")
    assert skipped == moved
    assert moment("2026-10-25 02:30:00 Europe/Berlin") == moment("2026-10-25 00:30:00Z")


TP = TopicPartition
RANGES = [OffsetRange("a", 0, 10, 20), OffsetRange("a", 1, 0, 5), OffsetRange("b", 0, 0, 9)]


def late(answers: Mapping[TopicPartition, int | None]) -> Callable[..., Mapping[TopicPartition, int | None]]:
    """Return a stand-in for an offset lookup by timestamp that gives prepared answers."""
    return lambda questions: {tp: answers[tp] for tp in questions}


def test_ranges_are_cut_and_left_out() -> None:
    assert narrowed_ranges(RANGES, EVERYTHING, late({})) == RANGES
    assert narrowed_ranges(RANGES, NOTHING, late({})) == []
    two = Wanted(partitions=frozenset([0]), offset_min=8, offset_end=15)
    assert narrowed_ranges(RANGES, two, late({})) == [OffsetRange("a", 0, 10, 15), OffsetRange("b", 0, 8, 9)]
    assert narrowed_ranges(RANGES, Wanted(topics=frozenset("b")), late({})) == RANGES[2:]


def test_times_are_asked_of_brokers() -> None:
    answers = {TP("a", 0): 12, TP("a", 1): None, TP("b", 0): 9}
    assert narrowed_ranges(RANGES, Wanted(time_min_ms=5), late(answers)) == [OffsetRange("a", 0, 12, 20)]
    assert narrowed_ranges(RANGES, Wanted(time_min_ms=-5), late({})) == RANGES


def test_byte_offsets_are_not_cut() -> None:
    """A range of Kafka 0.7 byte offsets must end where a message ends, so it is not narrowed."""
    found = narrowed_ranges(RANGES, Wanted(offset_min=12, time_min_ms=5, partition_end=1), None)
    assert found == [RANGES[0], RANGES[2]]


def some_condition(dice: random.Random, depth: int = 0) -> str:
    """Return a random condition that Spark's SQL, DuckDB's SQL and the option `where` all accept."""
    if depth < 4 and dice.random() < 0.6:
        made = f"({some_condition(dice, depth + 1)} {dice.choice(['and', 'or'])} "
        made += f"{some_condition(dice, depth + 1)})"
        return f"not {made}" if dice.random() < 0.3 else made
    column = dice.choice(["partition", "offset", "key", "value", "topic", "timestampType"])
    values = {
        "key": ["'a'", "''", "null"],
        "value": ["'x'", "'it'", "null"],
        "topic": ["'a'", "'b'", "null"],
    }.get(column, ["-1", "0", "1", "2", "null"])
    shown = f'"{column}"'
    kind = dice.randrange(4)
    if kind == 0:
        return f"{shown} is {dice.choice(['', 'not '])}null"
    if kind == 1:
        chosen = ", ".join(dice.choice(values) for _ in range(dice.randrange(1, 4)))
        return f"{shown} {dice.choice(['', 'not '])}in ({chosen})"
    if kind == 2:
        return f"{shown} between {dice.choice(values)} and {dice.choice(values)}"
    return f"{shown} {dice.choice(['=', '<>', '<', '<=', '>', '>='])} {dice.choice(values)}"


def test_generated_conditions_are_decided_as_duckdb_decides_them() -> None:
    dice = random.Random(29)
    connection = duckdb.connect()
    connection.register("t", pa.Table.from_batches([RECORDS]))
    for number in range(300):
        text = some_condition(dice)
        where: Where = parsed_where(text.replace('"', "`"))
        found = where.filtered(RECORDS).column("offset").to_pylist()
        expected = connection.sql(f'select "offset" from t where {text}').fetchall()
        assert found == [row[0] for row in expected], (number, text)
