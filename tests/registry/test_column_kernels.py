"""Tests that the compiled loops for columns give the results of their Python source.

Others test columns of many record batches.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from google.protobuf.message_factory import GetMessageClass

from for_each import for_each
from penstock.records.kernels import compiled
from penstock.registry import from_schema
from penstock.registry.avro import columns as avro_columns
from penstock.registry.columns import protobuf_kernel, span_kernels
from penstock.registry.protobuf import columns as protobuf_columns
from penstock.registry.protobuf.schema import message_named, parse_protobuf

PLAIN = {each.__name__: each for each in compiled.KERNELS}
PROTO = """syntax = "proto3";
message R {
  int64 id = 1; string name = 2; double price = 3; optional int32 n = 4; bool ok = 5;
  optional string city = 6; repeated string tags = 7; repeated sint32 numbers = 8; Inner inner = 9;
  oneof choice { uint32 a = 10; string b = 11; } map<string, int64> map = 12; bytes raw = 13;
}
message Inner { float share = 1; optional bool flag = 2; string text = 3; }"""
PIECES = ["", "a", "Berlin", "Zürich", "日本語", "\U0001f600", "x" * 31, "eight..8", "ÿ" * 9]


def text(dice: random.Random) -> str:
    return "".join(dice.choice(PIECES) for _ in range(dice.randrange(3)))


def messages(dice: random.Random, count: int) -> list[bytes]:
    """Return encoded messages of `PROTO`; some are damaged, some are two joined messages."""
    made: Any = GetMessageClass(message_named(parse_protobuf(PROTO), "R"))
    found = []
    for _ in range(count):
        fields: dict[str, Any] = {
            "id": dice.getrandbits(63),
            "name": text(dice),
            "price": dice.random(),
            "n": dice.randrange(-5, 5),
            "ok": dice.random() < 0.5,
            "city": text(dice),
            "tags": [text(dice) for _ in range(dice.randrange(4))],
            "numbers": [dice.randrange(-300, 300) for _ in range(dice.randrange(4))],
            "inner": {"share": 0.5, "flag": True, "text": text(dice)},
            dice.choice("ab"): None,
            "map": {text(dice): dice.getrandbits(30)},
            "raw": dice.randbytes(dice.randrange(12)),
        }
        fields["a"] = dice.getrandbits(32) if "a" in fields else None
        fields["b"] = text(dice) if "b" in fields else None
        kept = {name: each for name, each in fields.items() if each is not None and dice.random() < 0.8}
        data = bytearray(made(**kept).SerializeToString())
        if dice.random() < 0.2:
            data += made(name=text(dice), b=text(dice)).SerializeToString()
        if data and dice.random() < 0.2:
            data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
        found.append(bytes(data))
    return found


@for_each(range(30))
def test_text_is_utf8_where_python_reads_it(seed: int) -> None:
    dice = random.Random(seed)
    for _ in range(40):
        data = bytearray("".join(dice.choice(PIECES) for _ in range(3)).encode())
        if data and dice.random() < 0.5:
            data[dice.randrange(len(data))] = dice.randrange(256)
        begin = dice.randrange(len(data) + 1)
        end = dice.randrange(begin, len(data) + 1)
        try:
            data[begin:end].decode()
            expected = True
        except UnicodeDecodeError:
            expected = False
        for slack in (0, 8):  # the loop reads whole words where the array allows it
            array = np.frombuffer(bytes(data) + b"\xff" * slack, dtype=np.uint8)
            assert span_kernels.is_utf8(array, begin, end) is expected
            assert PLAIN["is_utf8"](array, begin, end) is expected


@for_each(range(30))
def test_spans_are_copied_alike(seed: int) -> None:
    dice = random.Random(seed)
    data = np.frombuffer(dice.randbytes(100), dtype=np.uint8)
    constants = np.frombuffer(dice.randbytes(20), dtype=np.uint8)
    spans = []
    for _ in range(dice.randrange(1, 20)):
        size = dice.choice([0, 1, 5, 7, 8, 9, 20, 33])
        start = dice.randrange(100 - size) if size > 20 or dice.random() < 0.8 else -1
        spans.append((start, min(size, 20) if start < 0 else size))
    starts, sizes = (np.array(each, dtype=np.int64) for each in zip(*spans, strict=True))
    before = dice.randrange(5)
    expected = b"\0" * before + b"".join(
        (constants[:size] if start < 0 else data[start : start + size]).tobytes() for start, size in spans
    )
    for copy in (span_kernels.copy_spans, PLAIN["copy_spans"]):
        ends = np.full(len(spans) + 1, before, dtype=np.int32)
        target = np.zeros(len(expected), dtype=np.uint8)
        copy(data, constants, starts, sizes, len(spans), ends, target)
        assert target.tobytes() == expected
        assert ends.tolist() == [before, *(before + np.cumsum(sizes)).tolist()]


@pytest.mark.parametrize("seed", range(20))
def test_messages_are_read_alike(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pa.array(messages(random.Random(seed), 40), pa.binary())
    compiled_found = from_schema(rows, "protobuf", schema=PROTO)
    monkeypatch.setattr(protobuf_kernel, "read_protobuf", PLAIN["read_protobuf"])
    plain = from_schema(rows, "protobuf", schema=PROTO)
    compiled_found.values.validate(full=True)
    assert compiled_found.values.equals(plain.values)
    assert compiled_found.dead == plain.dead


@pytest.mark.parametrize("seed", range(20))
def test_many_batches_give_the_array_of_one(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    dice = random.Random(seed)
    rows = pa.array(messages(dice, 50), pa.binary())
    whole = from_schema(rows, "protobuf", schema=PROTO)
    monkeypatch.setattr(protobuf_columns, "ROWS", dice.randrange(1, 9))
    parts = from_schema(rows, "protobuf", schema=PROTO)
    parts.values.validate(full=True)
    assert parts.values.equals(whole.values)
    assert parts.dead == whole.dead


@pytest.mark.parametrize("schema", ['"string"', '["null", "int"]', '{"type": "array", "items": "string"}'])
def test_values_that_are_no_records_are_joined(schema: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = {'"string"': b"\x02a", '["null", "int"]': b"\x02\x04"}.get(schema, b"\x02\x02a\x00")
    rows = pa.array([data] * 5 + [b"\xff"])
    whole = from_schema(rows, "avro", schema=schema)
    monkeypatch.setattr(avro_columns, "ROWS", 2)
    parts = from_schema(rows, "avro", schema=schema)
    assert parts.values.equals(whole.values)
    assert parts.values.to_pylist()[:5] == whole.values.to_pylist()[:1] * 5
