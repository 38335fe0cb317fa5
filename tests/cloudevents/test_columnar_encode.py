"""Tests that encoding a batch of events gives the records that `to_record` returns for each event."""

from __future__ import annotations

import random
import re
from datetime import UTC, datetime, timedelta, timezone

import pyarrow as pa
import pytest

from cloudevents_cases import MEMBER_VALUES, NAMES, TEXTS, VALUES, batch_of, random_parts
from for_each import for_each
from penstock.cloudevents import (
    WELL_KNOWN_EXTENSIONS,
    AttributeType,
    Event,
    InvalidEventError,
    decode_events,
    encode_events,
    from_record,
    partitionkey_mapper,
    to_record,
)
from penstock.errors import ConfigError, EncodeError

MAP = pa.map_(pa.string(), pa.string())
MODES = [
    {"mode": "binary"},
    {"mode": "structured"},
    {"mode": "structured", "text_data": True},
    {"mode": "structured", "binary_headers": True},
]


def records_of(batch):
    for row in batch.to_pylist():
        headers = row["headers"]
        yield row["key"], row["value"], headers and [(header["key"], header["value"]) for header in headers]


@pytest.mark.parametrize("options", MODES)
def test_events_that_were_read_are_written_as_one_by_one(options):
    rng = random.Random(1)
    records = [random_parts(rng) for _ in range(6000)]
    events = [(record[0], event) for record in records if isinstance(event := from_record(*record), Event)]
    assert len(events) > 1000
    decoded = decode_events(batch_of(records))
    decoded = decoded.filter(decoded.column("error").is_null())
    encoded = encode_events(decoded, errors="column", **options)
    encoded.validate(full=True)
    errors = encoded.column("error").to_pylist()
    for written, error, (key, event) in zip(records_of(encoded), errors, events, strict=True):
        if error is not None:
            with pytest.raises(InvalidEventError, match=re.escape(error)):
                to_record(event, key=key, **options)
            assert written == (key, None, None)
            continue
        single = to_record(event, key=key, **options)
        if options["mode"] == "structured":
            single = to_record(as_table_has_it(event), key=key, **options)
        assert written == single


def as_table_has_it(event):
    """Return the event with its extensions as strings, the only type in a table's extensions map."""
    from penstock.cloudevents.event import imply_json
    from penstock.cloudevents.types import canonical_text

    texts = {name: canonical_text(value) for name, value in event.extensions.items()}
    copy = event.replace(extensions=texts)
    return imply_json(copy) if event.json_implied else copy


def random_cell(rng, choices, null=0.3):
    return None if rng.random() < null else rng.choice(choices).decode("utf-8", "ignore")


def random_row(rng):
    def cell(default, null=0.3):
        return default if rng.random() < 0.8 else random_cell(rng, TEXTS, null)

    extensions = [
        (rng.choice(EXTENSION_NAMES), random_cell(rng, TEXTS)) for _ in range(rng.choice((0, 0, 1, 2, 4)))
    ]
    content = rng.choice(
        [None, "application/json", "a/b+JSON; v=1", "text/plain", "text/xml; charset=latin-1", "x/y"]
    )
    return {
        "specversion": cell("1.0"),
        "id": cell("ä1"),
        "source": cell("/s"),
        "type": cell('t"\\'),
        "subject": cell(None, 0.9),
        "time_text": cell(None, 0.9),
        "datacontenttype": content if rng.random() < 0.9 else random_cell(rng, TEXTS),
        "content_type": rng.choice([None, "application/json", content]),
        "dataschema": cell(None, 0.9),
        "extensions": extensions,
        "data": rng.choice([*VALUES, *(value.encode("utf-8", "surrogatepass") for value in MEMBER_VALUES)]),
    }


EXTENSION_NAMES = [name[3:].lower() for name in NAMES if name.startswith("ce_")]
SCHEMA = pa.schema(
    [(name, pa.string()) for name in ("specversion", "id", "source", "type", "subject", "time_text")]
    + [(name, pa.string()) for name in ("datacontenttype", "content_type", "dataschema")]
    + [("extensions", MAP), ("data", pa.binary())]
)


def event_of_row(row):
    """Return the event that a row stands for according to the documentation."""
    from penstock.cloudevents.event import imply_json

    for name in ("specversion", "id", "source", "type"):
        if row[name] is None:
            raise InvalidEventError("C1", name)
    names = [name for name, text in row["extensions"] if text is not None]
    if len(names) != len(set(names)):
        raise InvalidEventError("C2", "")
    extensions = {name: text for name, text in row["extensions"] if text is not None}
    arguments = {
        name: row[name] for name in SCHEMA.names if name not in ("time_text", "content_type", "extensions")
    }
    event = Event(**arguments, time=row["time_text"], extensions=extensions)
    return imply_json(event) if row["content_type"] == "application/json" else event


@for_each([(options, seed) for seed in range(3) for options in MODES])
def test_random_tables(options, seed):
    rng = random.Random(seed)
    rows = [random_row(rng) for _ in range(1500)]
    encoded = encode_events(pa.RecordBatch.from_pylist(rows, SCHEMA), errors="column", **options)
    encoded.validate(full=True)
    lines = zip(rows, records_of(encoded), encoded.column("error").to_pylist(), strict=True)
    valid = 0
    for row, written, error in lines:
        expected, rule = record_of_row(row, options)
        assert written == expected, row
        assert (error and error.partition(":")[0]) == rule, row
        valid += rule is None
    assert valid > 300


def record_of_row(row, options):
    try:
        return to_record(event_of_row(row), **options), None
    except InvalidEventError as error:
        return (None, None, None), error.rule


def minimal(rows=1, **columns):
    arrays = {
        "id": pa.array([str(row) for row in range(rows)]),
        "source": ["/s"] * rows,
        "type": ["t"] * rows,
    }
    return pa.RecordBatch.from_pydict(arrays | columns)


def test_times_are_written_in_their_canonical_form():
    moments = [
        datetime(2018, 4, 5, 3, 56, 24, tzinfo=UTC),
        datetime(2018, 4, 5, 3, 56, 24, 120000, tzinfo=UTC),
        datetime(2018, 4, 5, 5, 56, 24, 123456, tzinfo=timezone(timedelta(hours=2))),
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=UTC),
        datetime(2000, 2, 29, tzinfo=UTC),
        datetime(1900, 3, 1, tzinfo=UTC),
        None,
    ]
    batch = minimal(len(moments), time=pa.array(moments, pa.timestamp("us", tz="UTC")))
    written = [dict(headers).get("ce_time") for _, _, headers in records_of(encode_events(batch))]
    assert written == [
        b"2018-04-05T03:56:24Z",
        b"2018-04-05T03:56:24.120Z",
        b"2018-04-05T03:56:24.123456Z".replace(b"05:", b"03:"),
        b"0001-01-01T00:00:00Z",
        b"9999-12-31T23:59:59.999999Z",
        b"1969-12-31T23:59:59.999Z",
        b"2000-02-29T00:00:00Z",
        b"1900-03-01T00:00:00Z",
        None,
    ]
    back = decode_events(encode_events(batch))
    assert back.column("time").to_pylist() == moments
    assert back.column("time_text").null_count == len(moments)


def test_times_in_other_units_and_as_text():
    seconds = minimal(time=pa.array([1], pa.timestamp("s", tz="Europe/Berlin")))
    assert ("ce_time", b"1970-01-01T00:00:01Z") in next(records_of(encode_events(seconds)))[2]
    text = minimal(time=["2018-04-05T03:56:24.1234567Z"])
    assert ("ce_time", b"2018-04-05T03:56:24.1234567Z") in next(records_of(encode_events(text)))[2]
    with pytest.raises(ConfigError, match="time zone"):
        encode_events(minimal(time=pa.array([1], pa.timestamp("us"))))
    with pytest.raises(ConfigError, match="digits"):
        encode_events(minimal(time=pa.array([1], pa.timestamp("ns", tz="UTC"))))
    with pytest.raises(EncodeError, match="row 0: T7"):
        encode_events(minimal(time=pa.array([2**62], pa.timestamp("us", tz="UTC"))))


def test_extensions_in_columns_of_their_own_join_those_of_the_map():
    batch = minimal(
        2,
        extensions=pa.array([[("zeta", "z"), ("alpha", "a")], None], MAP),
        ce_number=pa.array([1, None], pa.int64()),
        ce_flag=pa.array([True, False]),
        ce_blob=pa.array([b"Ma", b""], pa.binary()),
        ce_when=pa.array([None, 1_000_000], pa.timestamp("us", tz="UTC")),
        ce_partitionkey=pa.array(["p", None], pa.string()),
    )
    records = list(records_of(encode_events(batch, key_mapper=partitionkey_mapper)))
    assert [key for key, _, _ in records] == [b"p", None]
    assert records[0][2][4:] == [
        ("ce_alpha", b"a"),
        ("ce_blob", b"TWE="),
        ("ce_flag", b"true"),
        ("ce_number", b"1"),
        ("ce_partitionkey", b"p"),
        ("ce_zeta", b"z"),
    ]
    assert records[1][2][4:] == [
        ("ce_blob", b""),
        ("ce_flag", b"false"),
        ("ce_when", b"1970-01-01T00:00:01Z"),
    ]
    structured = [value for _, value, _ in records_of(encode_events(batch, mode="structured"))]
    assert b',"flag":true,"number":1,"partitionkey":"p"' in structured[0]
    types = {**WELL_KNOWN_EXTENSIONS, "number": AttributeType.INTEGER, "flag": AttributeType.BOOLEAN}
    back = decode_events(encode_events(batch), columns=["ce_number", "ce_flag"], extension_types=types)
    assert back.column("ce_number").to_pylist() == [1, None]
    assert back.column("ce_flag").to_pylist() == [True, False]


def test_columns_of_the_wrong_type_are_refused():
    for columns in (
        {"extensions": ["x"]},
        {"ce_x": pa.array([1.5])},
        {"ce_sampledrate": pa.array([True])},
        {"subject": pa.array([1])},
    ):
        with pytest.raises(ConfigError):
            encode_events(minimal(**columns))
    with pytest.raises(ConfigError, match="'id'"):
        encode_events(pa.RecordBatch.from_pydict({"source": ["/s"], "type": ["t"]}))
    with pytest.raises(ConfigError):
        encode_events(minimal(), mode="batch")
    with pytest.raises(ConfigError):
        encode_events(minimal(), errors="ignore")
    with pytest.raises(ConfigError):
        encode_events(minimal(), key_mapper=lambda event: b"k")


def test_an_invalid_row_says_which_and_why():
    batch = minimal(3, subject=["a", "", None])
    with pytest.raises(EncodeError, match="row 1: C11: subject is empty"):
        encode_events(batch)


def test_other_columns_pass_through_and_slices_and_tables_work():
    batch = minimal(
        5,
        topic=["x"] * 5,
        key=pa.array(["a", "b", None, "", "e"]),
        data=pa.array([b"0", None, b"2", b"", b"4"], pa.binary()),
        extensions=pa.array([[("a", str(row))] * (row % 2) for row in range(5)], MAP),
    )
    whole = encode_events(batch)
    assert whole.schema.names == ["key", "value", "headers", "topic"]
    assert encode_events(batch.slice(1, 3)).to_pylist() == whole.slice(1, 3).to_pylist()
    mapped = encode_events(batch.slice(1, 3), key_mapper=partitionkey_mapper)
    assert mapped.column("key").to_pylist() == [b"b", None, b""]
    table = encode_events(pa.Table.from_batches([batch.slice(0, 2), batch.slice(2)]))
    assert table.to_pylist() == whole.to_pylist()
    assert encode_events(batch.slice(0, 0)).num_rows == 0
    assert encode_events(pa.Table.from_batches([], batch.schema)).num_rows == 0


@pytest.mark.parametrize("mode", ["binary", "structured"])
@pytest.mark.parametrize("reverse", [False, True])
def test_texts_of_every_length_at_every_distance_from_the_end_of_their_column(reverse, mode):
    sizes = [*range(1, 70), 255, 256, 257, 300]
    sizes = sizes[::-1] if reverse else sizes
    columns = {
        "id": ["i" * size for size in sizes],
        "source": ["/" + "s" * size for size in sizes],
        "type": ["t" * (size % 40 + 1) for size in sizes],
        "subject": ["ä" * size if size % 3 else None for size in sizes],
        "datacontenttype": ["application/json" if size % 5 else None for size in sizes],
        "data": [b"[" + b"1" * size + b"]" for size in sizes],
    }
    whole = pa.record_batch({**columns, "data": pa.array(columns["data"], pa.binary())})
    for batch in (whole, whole.slice(3), whole.slice(0, 5), whole.slice(len(sizes) - 1)):
        encoded = encode_events(batch, mode=mode)
        encoded.validate(full=True)
        assert [*records_of(encoded)] == [to_record(Event(**row), mode=mode) for row in batch.to_pylist()]
