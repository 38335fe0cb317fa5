"""Tests that decoding a batch of events gives, for each row, the result of decoding one event."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from cloudevents_cases import HEADERS, batch_of, outcomes, random_parts
from for_each import for_each
from penstock.cloudevents import AttributeType, Event, to_record
from penstock.cloudevents.columnar import EVENT_COLUMNS, EVENT_SCHEMA, decode_events, schema_for
from penstock.cloudevents.timestamps import format_timestamp
from penstock.errors import ConfigError


def decoded(batch, **options):
    """Decode a batch of events; yield its rows without the columns that are null."""
    out = decode_events(batch, columns=EVENT_SCHEMA.names, **options)
    out.validate(full=True)
    for row in out.select(EVENT_SCHEMA.names).to_pylist():
        if row["error"] is None:
            row["written"] = row.pop("time_text")
            if row["written"] is None and row["time"] is not None:
                row["written"] = format_timestamp("time", row["time"])
            yield row
        else:
            yield row


def check(records, **options):
    pairs = zip(decoded(batch_of(records), **options), outcomes(records, **options), records, strict=True)
    for got, expected, record in pairs:
        known = got.keys() | expected.keys()
        assert {name: got.get(name) for name in known} == {name: expected.get(name) for name in known}, record


@for_each([(seed, profile) for seed in range(8) for profile in ["strict", "lenient"]])
def test_random_records(seed, profile):
    rng = random.Random(seed)
    check([random_parts(rng) for _ in range(2000)], profile=profile)


@pytest.mark.parametrize("option", ["assume_structured", "partitionkey_from_key"])
def test_random_records_with_options(option):
    rng = random.Random(option)
    check([random_parts(rng) for _ in range(1000)], **{option: True})


EVENT = Event(
    id="1", source="/s", type="t", time="2018-04-05T03:56:24.5Z", extensions={"sampledrate": 5}, data=b"x"
)


def test_the_columns_of_the_batch_pass_through():
    batch = batch_of([to_record(EVENT, key=b"k")]).append_column("offset", pa.array([7]))
    out = decode_events(batch)
    assert out.schema.names == ["key", "value", "headers", "offset", *EVENT_COLUMNS]
    assert out.select(batch.schema.names) == batch
    assert out.schema == schema_for(schema=batch.schema)
    assert out.column("time_text").to_pylist() == ["2018-04-05T03:56:24.5Z"]


def test_only_the_columns_asked_for_are_made_and_every_rule_is_checked():
    bad = to_record(EVENT)[2] + [("ce_subject", b"")]
    batch = batch_of([to_record(EVENT), (None, None, bad)])
    out = decode_events(batch, columns=("data", "error"))
    assert out.schema.names[3:] == ["data", "error"]
    assert out.column("data").to_pylist() == [b"x", None]
    assert out.column("error").to_pylist() == [None, "C11: subject is empty"]


def test_one_extension_in_a_column_of_its_type():
    structured = to_record(EVENT, mode="structured")
    odd = to_record(EVENT.replace(source="//[::1]/x"))
    batch = batch_of([to_record(EVENT), structured, odd, (None, None, None)])
    out = decode_events(batch, columns=("ce_sampledrate", "ce_other"))
    assert out.column("ce_sampledrate").type == pa.int32()
    assert out.column("ce_sampledrate").to_pylist() == [5, 5, 5, None]
    assert out.column("ce_other").to_pylist() == [None] * 4
    types = {
        "b": AttributeType.BOOLEAN,
        "t": AttributeType.TIMESTAMP,
        "x": AttributeType.BINARY,
        "n": AttributeType.INTEGER,
    }
    event = EVENT.replace(
        extensions={"b": True, "t": "2018-04-05T03:56:24Z", "x": b"Ma", "n": "often"}, extension_types={}
    )
    wanted = [f"ce_{name}" for name in types]
    options = {"columns": wanted, "profile": "lenient", "extension_types": types}
    out = decode_events(batch_of([to_record(event)]), **options)
    moment = datetime(2018, 4, 5, 3, 56, 24, tzinfo=UTC)
    assert out.select(wanted).to_pylist() == [{"ce_b": True, "ce_t": moment, "ce_x": b"Ma", "ce_n": None}]
    assert out.schema == schema_for(wanted, batch_of([]).schema, types)


def test_slices_tables_and_other_layouts():
    rng = random.Random(9)
    records = [random_parts(rng) for _ in range(300)]
    batch = batch_of(records)
    whole = decode_events(batch)
    part = decode_events(batch.slice(100, 50))
    part.validate(full=True)
    assert part.to_pylist() == whole.slice(100, 50).to_pylist()
    table = pa.Table.from_batches([batch.slice(0, 120), batch.slice(120)])
    assert decode_events(table).to_pylist() == whole.to_pylist()
    empty = decode_events(pa.Table.from_batches([], batch.schema))
    assert empty.num_rows == 0
    assert empty.schema == whole.schema
    assert decode_events(batch.slice(0, 0)).num_rows == 0
    large = pa.large_list(
        pa.struct([pa.field("key", pa.large_string()), pa.field("value", pa.large_binary())])
    )
    other = batch.set_column(2, "headers", batch.column("headers").cast(large))
    other = other.set_column(1, "value", batch.column("value").cast(pa.large_binary()))
    assert decode_events(other, columns=("data", "error")).select(["data", "error"]).to_pylist() == (
        whole.select(["data", "error"]).to_pylist()
    )
    assert decode_events(batch_of([to_record(EVENT)] * 3).take([2, 0])).column("id").to_pylist() == ["1", "1"]


def test_null_headers_and_null_names():
    struct = HEADERS.value_type
    parts = [[{"key": name, "value": value} for name, value in to_record(EVENT)[2]] + [None], None, []]
    parts[2] = [{"key": None, "value": b"x"}]
    headers = pa.array(parts, pa.list_(pa.field("element", struct)))
    batch = pa.RecordBatch.from_arrays([pa.nulls(3, pa.binary()), headers], names=["value", "headers"])
    assert decode_events(batch).column("id").to_pylist() == ["1", None, None]


def test_header_names_that_are_no_text_harm_nobody():
    names = pa.Array.from_buffers(
        pa.string(), 2, [None, pa.py_buffer(b"\0\0\0\0\5\0\0\0\6\0\0\0"), pa.py_buffer(b"ce_\xff\xfea")]
    )
    headers = pa.ListArray.from_arrays(
        [0, 2], pa.StructArray.from_arrays([names, pa.array([b"x", b"y"])], ["key", "value"])
    )
    batch = pa.RecordBatch.from_arrays([pa.array([b"x"]), headers], names=["value", "headers"])
    assert decode_events(batch, columns=("outcome",)).column("outcome").to_pylist() == ["not an event"]


def test_what_cannot_be_decoded_is_refused():
    batch = batch_of([])
    for wrong in (
        batch.drop_columns(["value"]),
        batch.drop_columns(["headers"]),
        batch.set_column(1, "value", pa.array([], pa.int32())),
        batch.set_column(2, "headers", pa.array([], pa.list_(pa.string()))),
        batch.append_column("id", pa.array([], pa.string())),
    ):
        with pytest.raises(ConfigError):
            decode_events(wrong)
    with pytest.raises(ConfigError, match="'ids'"):
        decode_events(batch, columns=("ids",))
    with pytest.raises(ConfigError, match="profile"):
        decode_events(batch, profile="loose")


def test_many_extensions_in_structured_rows_find_room():
    event = EVENT.replace(extensions={f"e{number}": "x" for number in range(40)})
    batch = batch_of([to_record(event, mode="structured")] * 3)
    assert [len(row) for row in decode_events(batch).column("extensions").to_pylist()] == [40] * 3


@pytest.mark.parametrize("text_data", [False, True])
def test_data_that_do_not_stand_there_as_they_are_need_no_asking(text_data, monkeypatch):
    rng = random.Random(11)
    characters = 'ab"\\/\b\f\n\r\t\x00\x1f\x7fäж€🌎'
    texts = ["".join(rng.choices(characters, k=rng.randrange(40))) for _ in range(500)]
    types = ["text/plain", "application/xml; charset=UTF-8"]
    events = [EVENT.replace(data=text.encode(), datacontenttype=rng.choice(types)) for text in texts]
    records = [to_record(event, mode="structured", text_data=text_data) for event in events]
    if text_data:  # written by others, with every character beyond ASCII escaped
        records += [(None, json.dumps(json.loads(value)).encode(), headers) for _, value, headers in records]
    monkeypatch.setattr("penstock.cloudevents.columnar.located_rows.from_record", None)
    out = decode_events(batch_of(records))
    assert out.column("data").to_pylist() == [text.encode() for text in texts] * (1 + text_data)
