"""Tests that DataFrames of CloudEvents give the results of decoding and encoding single events."""

from __future__ import annotations

import random
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from cloudevents_cases import READING, TEXTS, VALUES, batch_of, parts_of, random_parts
from penstock.cloudevents import (
    Event,
    InvalidEvent,
    NotAnEvent,
    decode_events,
    encode_events,
    from_record,
    partitionkey_mapper,
)
from penstock.errors import ConfigError
from penstock.spark import from_cloudevents, to_cloudevents
from penstock.spark.source.schema import EVENT_COLUMNS

CORE = ("id", "source", "specversion", "type", "subject", "datacontenttype", "dataschema", "content_type")


@pytest.fixture(scope="module")
def records():
    rng = random.Random(11)
    return [parts_of(case["read"]) for case in READING] + [random_parts(rng) for _ in range(1_500)]


def frame_of(spark, records):
    rows = pa.array(range(len(records)), pa.int64())
    return spark.createDataFrame(pa.Table.from_batches([batch_of(records)]).add_column(0, "row", rows))


def rows_of(frame):
    """Return a frame's rows sorted by number; a sort in Spark would run the query twice."""
    return sorted(frame.toArrow().to_pylist(), key=lambda row: row["row"])


def check(row, outcome, *, exactly):
    """Compare a row of the frame with the outcome of `from_record`."""
    if not isinstance(outcome, Event):
        kind = "not an event" if isinstance(outcome, NotAnEvent) else "invalid event"
        assert (row["outcome"], row["rule"]) == (kind, outcome.rule), (row, outcome)
        assert row["error"] == str(outcome) if exactly else row["error"].startswith(f"{outcome.rule}: ")
        assert all(row[name] is None for name in EVENT_COLUMNS if name not in ("error", "outcome", "rule"))
        return
    assert (row["outcome"], row["rule"], row["error"]) == ("event", None, None), (row, outcome)
    assert {name: row[name] for name in CORE} == {name: getattr(outcome, name) for name in CORE}
    assert row["time"] == outcome.time
    assert row["data"] == outcome.data


@pytest.mark.parametrize("profile", ["strict", "lenient"])
def test_every_vector_and_generated_records_are_read_alike(spark, records, profile):
    frame = from_cloudevents(frame_of(spark, records), columns=tuple(EVENT_COLUMNS), profile=profile)
    rows = rows_of(frame)
    names = [name for name in EVENT_COLUMNS if name != "error"]
    decoded = decode_events(batch_of(records), columns=[*names, "error"], profile=profile)
    for row, other, record in zip(rows, decoded.to_pylist(), records, strict=True):
        check(row, from_record(*record, profile=profile), exactly=True)
        for cells in (row, other):
            cells["extensions"] = None if cells["extensions"] is None else dict(cells["extensions"])
        assert {name: row[name] for name in names} == {name: other[name] for name in names}


def test_binary_mode_needs_no_python(spark, records):
    frame = from_cloudevents(frame_of(spark, records), columns=tuple(EVENT_COLUMNS), modes="binary")
    assert "Python" not in frame._jdf.queryExecution().executedPlan().toString()
    structured = 0
    for row, record in zip(rows_of(frame), records, strict=True):
        if row["rule"] in ("K15", "K3"):
            structured += 1
            content_types = [value for name, value in record[2] if name.lower() == "content-type"]
            assert content_types[0].lower().startswith(b"application/cloudevents")
        else:
            check(row, from_record(*record), exactly=False)
    assert structured > 500


def test_the_reason_is_the_same_where_it_quotes_plain_text(spark):
    headers = [("ce_specversion", b"1.0"), ("ce_id", b"1"), ("ce_source", b"a b"), ("ce_type", b"t")]
    broken = [
        headers,
        headers[:3],
        [*headers, ("ce_id", b"2")],
        [("ce_id", None), *headers[:1], *headers[2:]],
    ]
    broken += [
        [*headers[:2], ("ce_source", b"/" * 90 + b" "), headers[3]],
        [("ce_id", "\U0001ffff".encode())],
    ]
    records = [(None, None, some) for some in broken]
    rows = rows_of(from_cloudevents(frame_of(spark, records)))
    assert [row["error"] for row in rows] == [str(from_record(*record)) for record in records]


def event_cells(count):
    """Return columns of valid and invalid events, of every type that `encode_events` accepts."""
    rng = random.Random(5)
    names = ["partitionkey", "note", "sampledrate", "deprecated", "dssematerial", "dataref", "expirytime"]
    names += ["deprecationmigration", "id", "A", "data", "zz"]
    times = [
        None,
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(1960, 2, 29, 23, 59, 59, 999_999, tzinfo=UTC),
        datetime(2018, 4, 5, 3, 56, 24, 1_000, tzinfo=UTC),
        datetime(2018, 4, 5, 3, 56, 24, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    ]

    def text(null, *plain):
        chance = rng.random()
        if chance < null:
            return None
        return rng.choice(plain) if chance < 0.85 else rng.choice(TEXTS).decode("utf-8", "ignore")

    return [
        {
            "row": row,
            "key": rng.choice([None, b"k"]),
            "id": text(0.02, "1"),
            "source": text(0.02, "/s"),
            "type": text(0.02, "t"),
            "subject": text(0.5, "s"),
            "datacontenttype": text(0.4, "application/json", "text/plain"),
            "content_type": rng.choice([None, "application/json"]),
            "dataschema": text(0.7, "https://example.com/x"),
            "time": rng.choice(times),
            "time_text": rng.choice([*[None] * 5, text(0, "2018-04-05T03:56:24+01:00")]),
            "extensions": {rng.choice(names): text(0.1, "1", "true", "a") for _ in range(rng.randrange(3))},
            "data": rng.choice(VALUES),
            "ce_flag": rng.choice([None, True, False]),
            "ce_note": rng.choice([*[None] * 9, "n"]),
            "ce_num": rng.choice([None, None, 5, 2**40]),
            "ce_when": rng.choice(times),
            "topic": "t",
        }
        for row in range(count)
    ]


EVENTS = pa.schema(
    [("row", pa.int64()), ("key", pa.binary())]
    + [(name, pa.string()) for name in ("id", "source", "type", "subject", "datacontenttype", "content_type")]
    + [("dataschema", pa.string()), ("time", pa.timestamp("us", "UTC")), ("time_text", pa.string())]
    + [("extensions", pa.map_(pa.string(), pa.string())), ("data", pa.binary()), ("ce_flag", pa.bool_())]
    + [("ce_note", pa.string()), ("ce_num", pa.int64()), ("ce_when", pa.timestamp("us", "UTC"))]
    + [("topic", pa.string())]
)


@pytest.mark.parametrize("mode", ["binary", "structured"])
def test_events_are_written_as_a_batch_is(spark, mode):
    batch = pa.RecordBatch.from_pylist(event_cells(1_500), EVENTS)
    options = {"mode": mode, "errors": "column", "key_mapper": partitionkey_mapper}
    frame = to_cloudevents(spark.createDataFrame(pa.Table.from_batches([batch])), **options)
    if mode == "binary":
        assert "Python" not in frame._jdf.queryExecution().executedPlan().toString()
    assert frame.columns == ["key", "value", "headers", "row", "topic", "error"]
    errors = 0
    for row, other in zip(rows_of(frame), encode_events(batch, **options).to_pylist(), strict=True):
        error, other_error = row.pop("error"), other.pop("error")
        errors += error is not None
        assert (error or "").partition(":")[0] == (other_error or "").partition(":")[0], (error, other_error)
        assert row == other
    assert 250 < errors < 1_250


@pytest.mark.parametrize("mode", ["binary", "structured"])
def test_what_was_read_is_written_again(spark, records, mode):
    good = [record for record in records if isinstance(from_record(*record), Event)]
    good = [
        record for record in good if "cloudevents" not in (from_record(*record).content_type or "").lower()
    ]
    columns = [name for name in EVENT_COLUMNS if name not in ("outcome", "rule")]
    frame = to_cloudevents(from_cloudevents(frame_of(spark, good), columns=columns), mode=mode)
    for row, record in zip(rows_of(frame), good, strict=True):
        headers = [(header["key"], header["value"]) for header in row["headers"]]
        event, again = from_record(*record), from_record(row["key"], row["value"], headers)
        assert again.replace(extensions=None) == event.replace(extensions=None)
        assert row["key"] == record[0]


def test_a_row_that_is_no_event_fails_the_query(spark):
    frame = spark.createDataFrame([("1", "a b", "t")], "id string, source string, type string")
    for mode in ("binary", "structured"):
        with pytest.raises(Exception, match="T6: source is not a URI-reference: 'a b'"):
            to_cloudevents(frame, mode=mode).toArrow()


def test_the_key_fills_an_absent_partitionkey(spark, records):
    """The expected values come from `from_record`, which follows the project's rule D21."""
    frame = frame_of(spark, records)
    read = from_cloudevents(frame, columns=["outcome", "ce_partitionkey"], partitionkey_from_key=True).select(
        "row", "outcome", "ce_partitionkey"
    )
    for row in rows_of(read):
        key, value, headers = records[row["row"]]
        outcome = from_record(key, value, headers, partitionkey_from_key=True)
        expected = outcome.extensions.get("partitionkey") if isinstance(outcome, Event) else None
        assert row["ce_partitionkey"] == expected
    with pytest.raises(ConfigError, match="needs a column 'key'"):
        from_cloudevents(frame.drop("key"), partitionkey_from_key=True)
    with pytest.raises(ConfigError, match="partitionkey_from_key"):
        from_cloudevents(frame, modes="binary", partitionkey_from_key=True)


def test_options_are_checked(spark):
    frame = spark.createDataFrame([(b"",)], "value binary")
    with pytest.raises(ConfigError, match="needs a column 'headers'"):
        from_cloudevents(frame)
    whole = frame.selectExpr("value", "cast(null as array<struct<key:string,value:binary>>) headers")
    for wrong in ({"columns": ["nothing"]}, {"modes": "batch"}, {"profile": "odd"}):
        with pytest.raises(ConfigError):
            from_cloudevents(whole, **wrong)
    with pytest.raises(ConfigError, match="strict"):
        from_cloudevents(whole, modes="binary", profile="lenient")
    with pytest.raises(ConfigError, match="needs a column 'id'"):
        to_cloudevents(frame)
    events = spark.createDataFrame([("1", "s", "t")], "id string, source string, type string")
    for wrong in ({"mode": "batch"}, {"errors": "ignore"}, {"key_mapper": lambda event: None}):
        with pytest.raises(ConfigError):
            to_cloudevents(events, **wrong)
    with pytest.raises(ConfigError, match="no extension can be a column of double: ce_a"):
        to_cloudevents(events.selectExpr("*", "cast(1 as double) ce_a"))
    assert isinstance(from_record(None, None, [("ce_id", b"1")]), InvalidEvent)
