"""Tests of encoding columns to Avro: the bytes are fastavro's, and fastavro reads the original rows."""

from __future__ import annotations

import datetime as dt
import decimal
import io
import json
import random
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from for_each import for_each
from penstock.errors import EncodeError
from penstock.records.kernels.compiled import KERNELS, library_name
from penstock.registry.avro import writing
from penstock.registry.avro.schema import parse_avro
from penstock.registry.avro.writing import write_columns
from penstock.registry.columns import avro_write_kernel
from penstock.registry.encoding import avro_schema

PREFIX = b"\0\0\0\0\7"


def read(data: bytes, schema: Any) -> Any:
    assert data[:5] == PREFIX
    stream = io.BytesIO(data[5:])
    found = fastavro.schemaless_reader(stream, schema, None)
    assert stream.read() == b""
    return found


def plain(value: Any, kind: pa.DataType) -> Any:
    """Return a value of `to_pylist` as fastavro returns it."""
    if value is None:
        return None
    if pa.types.is_map(kind):
        return {key: plain(each, kind.item_type) for key, each in value}
    if pa.types.is_struct(kind):
        return {each.name: plain(value[each.name], each.type) for each in kind}
    if pa.types.is_list(kind):
        return [plain(each, kind.value_type) for each in value]
    return value


def some_type(dice: random.Random, depth: int = 0) -> pa.DataType:
    plain_types = [
        pa.bool_(), pa.int8(), pa.int32(), pa.uint32(), pa.int64(), pa.float32(), pa.float64(), pa.string(),
        pa.large_string(), pa.binary(), pa.date32(), pa.timestamp("us", "UTC"), pa.timestamp("ms", "UTC"),
        pa.decimal128(30, 4), pa.binary(3),
    ]  # fmt: skip
    if depth < 3 and dice.random() < 0.4:
        kind = dice.randrange(3)
        if kind == 0:
            return pa.list_(some_type(dice, depth + 1))
        if kind == 1:
            return pa.map_(pa.string(), some_type(dice, depth + 1))
        return pa.struct([(f"f{n}", some_type(dice, depth + 1)) for n in range(dice.randrange(1, 4))])
    return dice.choice(plain_types)


def some_value(dice: random.Random, kind: pa.DataType) -> Any:
    if dice.random() < 0.2:
        return None
    if pa.types.is_struct(kind):
        return {each.name: some_value(dice, each.type) for each in kind}
    if pa.types.is_map(kind):
        return [(f"k{n}", some_value(dice, kind.item_type)) for n in range(dice.randrange(3))]
    if pa.types.is_list(kind):
        return [some_value(dice, kind.value_type) for _ in range(dice.randrange(4))]
    if pa.types.is_boolean(kind):
        return dice.random() < 0.5
    if pa.types.is_integer(kind):
        bits = kind.bit_width
        low = 0 if pa.types.is_unsigned_integer(kind) else -(1 << (bits - 1))
        return dice.choice([0, 1, low, low + (1 << bits) - 1, low + dice.randrange(1 << bits)])
    if pa.types.is_floating(kind):
        return dice.choice([0.0, 1.5, -2.25, float("inf")])
    if pa.types.is_decimal128(kind):
        unscaled = dice.choice([0, 1, -1, -128, 128, 255, dice.randrange(-(10**30) + 1, 10**30)])
        return decimal.Decimal(unscaled).scaleb(-4, decimal.Context(prec=40))
    if pa.types.is_date32(kind):
        return dt.date(2026, 1, 1) + dt.timedelta(days=dice.randrange(-20_000, 20_000))
    if pa.types.is_timestamp(kind):
        return dt.datetime(2026, 1, 1, tzinfo=dt.UTC) + dt.timedelta(
            milliseconds=dice.randrange(-(10**12), 10**12)
        )
    if pa.types.is_fixed_size_binary(kind):
        return dice.randbytes(3)
    if pa.types.is_binary(kind):
        return dice.randbytes(dice.choice([0, 1, 15, 16, 17, 40]))
    return dice.choice(["", "a", "Zürich", "x" * 17, "y" * 300, "\U0001f600"])


@for_each(range(60))
def test_generated_columns_are_read_by_fastavro_as_they_were(seed: int) -> None:
    dice = random.Random(seed)
    kind = pa.struct([(f"c{n}", some_type(dice)) for n in range(dice.randrange(1, 6))])
    rows = [some_value(dice, kind) for _ in range(40)]
    column = pa.array(rows, kind).slice(dice.randrange(5), 30)
    schema = avro_schema(kind)
    written = write_columns(column, parse_avro(json.dumps(schema)), PREFIX)
    assert written is not None
    parsed = fastavro.parse_schema(schema)
    expected = [plain(row, kind) for row in column.to_pylist()]
    assert [None if one is None else read(one, parsed) for one in written.to_pylist()] == expected


def test_lists_of_rows_that_are_null_are_passed_over() -> None:
    """Arrow may store items of a null list, and lists of a null struct, which must not be encoded."""
    lists = pa.ListArray.from_arrays([0, 2, 5, 6], pa.array(range(6)), mask=pa.array([False, True, False]))
    inner = pa.StructArray.from_arrays([lists], ["l"], mask=pa.array([True, False, False]))
    outer = pa.StructArray.from_arrays([inner], ["s"])
    schema = avro_schema(outer.type)
    written = write_columns(outer, parse_avro(json.dumps(schema)), PREFIX)
    assert written is not None
    found = [read(one, fastavro.parse_schema(schema)) for one in written.to_pylist()]
    assert found == [{"s": None}, {"s": {"l": None}}, {"s": {"l": [5]}}]


def test_bytes_are_those_of_fastavro() -> None:
    kind = {
        "type": "record",
        "name": "R",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "color", "type": {"type": "enum", "name": "C", "symbols": ["RED", "BLUE"]}},
            {"name": "late", "type": ["string", "null"]},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
            {"name": "more", "type": ["null", "int"], "default": None},
            {"name": "none", "type": "null"},
        ],
    }
    rows = [
        {"id": -5, "color": "BLUE", "late": None, "at": 17, "none": None},
        {"id": 1 << 40, "color": "RED", "late": "x", "at": 0, "none": None},
    ]
    column = pa.array(rows)
    written = write_columns(column, parse_avro(json.dumps(kind)), PREFIX)
    assert written is not None
    parsed = fastavro.parse_schema(kind)
    for data, row in zip(written.to_pylist(), rows, strict=True):
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, row)
        assert data == PREFIX + out.getvalue()


MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 3}
UNSURE: dict[str, tuple[Any, pa.Array]] = {
    "null without a null": ("int", pa.array([1, None])),
    "too large": ("int", pa.array([1 << 40])),
    "too large and unsigned": ("int", pa.array([(1 << 32) - 1], pa.uint32())),
    "another type": ("int", pa.array(["x"])),
    "doubles as floats": ("float", pa.array([1.5])),
    "several branches": (["null", "int", "string"], pa.array([1])),
    "another unit": (MILLIS, pa.array([dt.datetime(2026, 1, 1)])),
    "no such symbol": ({"type": "enum", "name": "E", "symbols": ["A"]}, pa.array(["B"])),
    "a size": ({"type": "fixed", "name": "F", "size": 2}, pa.array([b"abc"], pa.binary(3))),
    "a scale": (DECIMAL, pa.array([decimal.Decimal("1.5")])),
}


@for_each(UNSURE)
def test_what_is_not_sure_is_left_to_rows(case: str) -> None:
    kind, field = UNSURE[case]
    record = {"type": "record", "name": "R", "fields": [{"name": "a", "type": kind}]}
    schema = parse_avro(json.dumps(record))
    assert write_columns(pa.StructArray.from_arrays([field], ["a"]), schema, PREFIX) is None
    missing = pa.StructArray.from_arrays([field], ["b"])
    assert write_columns(missing, schema, PREFIX) is None


def test_text_that_is_no_utf8_is_an_error() -> None:
    column = pa.array([b"\xff"]).view(pa.string())
    with pytest.raises(EncodeError, match="UTF-8"):
        write_columns(column, parse_avro('"string"'), PREFIX)


def test_many_rows_are_written_in_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "ROWS_AT_A_TIME", 7)
    monkeypatch.setattr(writing, "OUTPUT_BYTES_MAX", 400)
    column = pa.array([f"text {number}" for number in range(20)])
    written = write_columns(column, parse_avro('"string"'), PREFIX)
    assert written is not None
    assert [one[6:].decode() for one in written.to_pylist()] == column.to_pylist()
    with pytest.raises(EncodeError, match="2 GiB"):
        write_columns(pa.array(["x" * 500]), parse_avro('"string"'), PREFIX)


def test_the_loop_is_the_same_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = pa.struct([("a", pa.int64()), ("b", pa.list_(pa.string())), ("d", pa.decimal128(38, 4))])
    dice = random.Random(5)
    column = pa.array([some_value(dice, kind) for _ in range(30)], kind)
    schema = parse_avro(json.dumps(avro_schema(kind)))
    compiled = write_columns(column, schema, PREFIX)
    named = {library_name(each): each for each in KERNELS}
    for name in ("put_varint", "put_span", "put_decimal", "write_avro"):
        plainly = named[f"registry_columns_avro_write_kernel__{name}"]
        monkeypatch.setattr(avro_write_kernel, name, plainly)
        if name == "write_avro":
            monkeypatch.setattr(writing, name, plainly)
    assert write_columns(column, schema, PREFIX) == compiled
