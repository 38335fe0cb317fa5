"""Tests of decoding values whose schema ids vary by row: several writers, ids in headers, unknown ids."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.clock import ManualClock
from penstock.errors import ConfigError, DecodeError
from penstock.registry import Reference, Schema, framing, from_schema
from penstock.registry.decoding import UNKNOWN_IDS_MAX, UNKNOWN_IDS_RETRY_S, Decoder, taken_with_nulls
from registry import avro_schemas as drawn
from registry.fake_registry import FakeRegistry

OLD: dict[str, Any] = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}
NEW = {**OLD, "fields": [*OLD["fields"], {"name": "b", "type": "string", "default": "none"}]}


def two_versions() -> FakeRegistry:
    registry = FakeRegistry()
    registry.add("t-value", Schema(json.dumps(OLD)))
    registry.add("t-value", Schema(json.dumps(NEW)))
    return registry


def row(schema_id: int, made: Any, value: Any) -> bytes:
    return framing.id_prefix(schema_id) + drawn.encode(made, value)


def test_rows_of_several_versions_come_in_the_newest_and_in_their_order() -> None:
    registry = two_versions()
    rows = [row(1, OLD, {"a": 1}), None, row(2, NEW, {"a": 2, "b": "x"}), row(1, OLD, {"a": 3})] * 500
    found = from_schema(pa.chunked_array([rows[:999], rows[999:]], pa.binary()), "avro", registry).whole()
    assert found.to_pylist() == [{"a": 1, "b": "none"}, None, {"a": 2, "b": "x"}, {"a": 3, "b": "none"}] * 500
    assert registry.asked == {1: 1, 2: 1}


def test_the_readers_schema_may_be_another_one() -> None:
    rows = pa.array([row(1, OLD, {"a": 1}), row(2, NEW, {"a": 2, "b": "x"})])
    found = from_schema(rows, "avro", two_versions(), schema=json.dumps(OLD))
    assert found.whole().to_pylist() == [{"a": 1}, {"a": 2}]
    found = from_schema(rows, "avro", two_versions(), subject="t-value")
    assert found.whole().to_pylist() == [{"a": 1, "b": "none"}, {"a": 2, "b": "x"}]


def test_a_guid_in_the_headers_or_in_front() -> None:
    registry = two_versions()
    guid = registry.guid_of(1)
    bare = drawn.encode(OLD, {"a": 7})
    entries = [
        [("x", b"y"), ("__value_schema_id", framing.guid_header(guid))],
        [],
        [("__key_schema_id", b"")],
    ]
    headers = pa.array(
        [[{"key": key, "value": value} for key, value in each] for each in entries],
        pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
    )
    column = pa.array([bare, framing.guid_header(guid) + bare, row(2, NEW, {"a": 1, "b": ""})])
    found = from_schema(column, "avro", registry, headers=headers).whole()
    assert found.to_pylist() == [{"a": 7, "b": "none"}, {"a": 7, "b": "none"}, {"a": 1, "b": ""}]


def test_ids_in_headers_of_apicurio() -> None:
    """Content ids in headers are used; for a global id the row has a reason instead of a value.

    Confluent's header takes precedence, and null values stay null.
    """
    content, global_id = "apicurio.value.contentId", "apicurio.value.globalId"
    one, bare = (1).to_bytes(8, "big"), drawn.encode(OLD, {"a": 7})
    entries = [
        [(global_id, one), (content, one)],
        [(global_id, one)],
        [(content, b"x")],
        [(content, b"x"), (framing.VALUE_HEADER, framing.id_prefix(1))],
        [(content, one)],
        [("apicurio.key.contentId", one)],
    ]
    headers = pa.array(
        [[{"key": key, "value": value} for key, value in each] for each in entries],
        pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
    )
    column = pa.array([bare, bare, bare, bare, None, row(1, OLD, {"a": 8})], pa.binary())
    found = Decoder("avro", two_versions()).decode(column, headers)
    assert found.rows.tolist() == [0, 3, 4, 5]
    assert found.values.to_pylist() == [{"a": 7}, {"a": 7}, None, {"a": 8}]
    assert found.dead.column("row").to_pylist() == [1, 2]
    reasons = found.dead.column("reason").to_pylist()
    assert "use-id = contentId" in reasons[0]
    assert "no id of a schema" in reasons[1]


def test_rows_that_name_no_schema_and_schemas_that_are_unknown() -> None:
    registry = two_versions()
    registry.add("other", Schema("{}", "JSON"))
    registry.add("broken", Schema('{"type": "recrod"}'))
    registry.add("unlike", Schema('"string"'))
    column = [
        b"",
        b"\0\0",
        b"\7abcdefg",
        framing.id_prefix(77),
        framing.id_prefix(3) + b"{}",
        framing.id_prefix(4),
    ]
    column += [framing.id_prefix(5) + b"\2x", row(2, NEW, {"a": 1, "b": ""})]
    found = from_schema(pa.array(column), "avro", registry, subject="t-value")
    assert found.values.to_pylist() == [{"a": 1, "b": ""}]
    reasons = found.dead["reason"].to_pylist()
    for reason, part in zip(
        reasons,
        ["empty", "2 bytes", "begins with byte 7", "id 77 is unknown", "of type JSON", "id 4:", "id 5: "],
        strict=True,
    ):
        assert part in reason
    with pytest.raises(DecodeError, match="7 rows do not decode, the first is 0"):
        found.whole()


def test_a_topic_of_unknown_ids_does_not_make_a_request_for_each() -> None:
    registry = two_versions()
    decoder = Decoder("avro", registry, subject="t-value")
    for first in (100, 5_000):
        column = pa.array([framing.id_prefix(number) + b"x" for number in range(first, first + 2_000)])
        assert decoder.decode(column).dead.num_rows == 2_000
    assert sum(registry.asked.values()) == UNKNOWN_IDS_MAX + 1


def test_unknown_ids_are_asked_for_again_after_a_while() -> None:
    clock = ManualClock()
    registry = two_versions()
    decoder = Decoder("avro", registry, subject="t-value", clock=clock)
    late = pa.array([framing.id_prefix(3) + row(2, NEW, {"a": 1, "b": "x"})[5:]])
    many = pa.array([framing.id_prefix(number) + b"x" for number in range(100, 100 + 2 * UNKNOWN_IDS_MAX)])
    assert decoder.decode(late).dead.num_rows == 1
    assert decoder.decode(many).dead.num_rows == 2 * UNKNOWN_IDS_MAX
    assert decoder.unknown_ids == UNKNOWN_IDS_MAX
    registry.schemas[3] = registry.schemas[2]
    clock.advance(int(UNKNOWN_IDS_RETRY_S * 1000) - 1)
    assert decoder.decode(late).dead.num_rows == 1
    assert registry.asked[3] == 1
    clock.advance(1)
    assert decoder.decode(late).whole().to_pylist() == [{"a": 1, "b": "x"}]
    assert decoder.decode(many).dead.num_rows == 2 * UNKNOWN_IDS_MAX
    assert sum(registry.asked[number] for number in range(100, 1_000)) == 2 * UNKNOWN_IDS_MAX - 1


def test_ids_of_eight_bytes_are_read_where_they_are_asked_for() -> None:
    registry = two_versions()
    narrow = [row(1, OLD, {"a": 7}), row(2, NEW, {"a": 1, "b": "x"})]
    wide = [b"\0" + bytes(4) + each[1:] for each in narrow]
    column = pa.array([*wide, narrow[0], b"\0" + b"\xff" * 8 + b"x", b"\0" + bytes(3) + b"\1" * 5])
    found = from_schema(column, "avro", registry, id_bytes=8)
    assert found.values.to_pylist() == from_schema(pa.array(narrow), "avro", registry).whole().to_pylist()
    reasons = found.dead["reason"].to_pylist()
    for reason, part in zip(reasons, ["takes 9", "no id of a schema", "is unknown"], strict=True):
        assert part in reason
    with pytest.raises(ConfigError, match="4 bytes, or 8"):
        Decoder("avro", registry, id_bytes=5)


def test_references_are_known() -> None:
    registry = FakeRegistry()
    registry.add("address", Schema(json.dumps({**OLD, "name": "n.Address"})))
    outer = {"type": "record", "name": "n.Order", "fields": [{"name": "to", "type": "n.Address"}]}
    registry.add("order", Schema(json.dumps(outer), references=(Reference("n.Address", "address", 1),)))
    column = pa.array([framing.id_prefix(2) + b"\x0e"])
    assert from_schema(column, "avro", registry).whole().to_pylist() == [{"to": {"a": 7}}]


def test_slices_and_large_columns() -> None:
    rows = pa.array([row(1, OLD, {"a": number}) for number in range(50)], pa.large_binary()).slice(20, 10)
    found = from_schema(rows, "avro", two_versions(), schema=json.dumps(OLD)).whole()
    assert [each["a"] for each in found.to_pylist()] == list(range(20, 30))
    assert (
        from_schema(pa.array([], pa.binary()), "avro", two_versions(), subject="t-value").whole().to_pylist()
        == []
    )


@pytest.mark.parametrize("values", [[], [{"id": 1, "inside": {"x": 2}, "list": [1]}]])
def test_nulls_among_values_can_be_written_to_parquet(values: list[Any], tmp_path: Path) -> None:
    """Struct fields declared as not nullable contain no nulls, even in rows where the struct is null."""
    inside = pa.struct([pa.field("x", pa.int32(), nullable=False)])
    numbers = pa.list_(pa.field("element", pa.int32(), nullable=False))
    fields = [("id", pa.int64()), ("inside", inside), ("list", numbers)]
    kind = pa.struct([pa.field(name, each, nullable=False) for name, each in fields])
    places = np.array([-1, *range(len(values)), -1])
    found = taken_with_nulls(pa.array(values, kind), places)
    assert found.to_pylist() == [None, *values, None]
    pq.write_table(pa.table({"value": found}), tmp_path / "x.parquet")
    assert pq.read_table(tmp_path / "x.parquet")["value"].to_pylist() == [None, *values, None]
