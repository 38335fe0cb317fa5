"""Tests of the compiled decoder of JSON values: it agrees with Python's parser, or leaves the value to it."""

from __future__ import annotations

import json
import random
import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from for_each import for_each
from penstock.errors import DecodeError
from penstock.registry.columns.number_kernels import POWERS, number_bits, read_number
from penstock.registry.decoding import from_schema
from penstock.registry.json_schema.columns import HALF_PAIR, loaded
from penstock.registry.json_schema.program import JsonProgram, is_readable
from penstock.registry.json_schema.shapes import (
    BOOLEAN,
    INTEGER,
    LIST,
    MAP,
    NOTHING,
    NUMBER,
    OBJECT,
    STRING,
    TEXT,
    JsonShape,
    fitted,
    shape_of_schema,
)

NAMES = ["a", "id", "name", "größe", "averylongname", "averylongnamf", "x y", "", "1234567", "12345678"]
PIECES = ["a", "b", '"', "\\", "\n", "é", "日", "😀", "/", "xxxxxxxxxx", " ", "\x01", "\x7f"]
NOISE = b'{}[]",:0123456789.eE+-\\ntfu \x01\xff\xc3'


class Maker:
    """A generator of random column types, values, their JSON, and damaged JSON, determined by a seed."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def shape(self, depth: int = 0) -> JsonShape:
        chance = self.chance
        choice = chance.random()
        if depth == 0 or (depth < 4 and choice < 0.25):
            names = chance.sample(NAMES, chance.randint(0, 6))
            return JsonShape(OBJECT, tuple((name, self.shape(depth + 1)) for name in names))
        if depth < 4 and choice < 0.45:
            return JsonShape(LIST if choice < 0.35 else MAP, (("", self.shape(depth + 1)),))
        return JsonShape(chance.choice([BOOLEAN, INTEGER, NUMBER, STRING, TEXT, NOTHING]))

    def text(self) -> str:
        return "".join(self.chance.choice(PIECES) for _ in range(self.chance.randint(0, 6)))

    def number(self) -> float:
        chance = self.chance
        return chance.choice(
            [
                chance.randint(-5, 5),
                chance.randint(-(2**66), 2**66),
                chance.random() * 10 ** chance.randint(-30, 30),
                -0.0,
                float(chance.randint(-(10**18), 10**18)),
                chance.uniform(-1, 1) * 2.0 ** chance.randint(-1060, 1020),
            ]
        )

    def any(self, depth: int = 0) -> Any:
        choice = self.chance.random()
        if depth < 4 and choice < 0.15:
            return {self.text(): self.any(depth + 1) for _ in range(self.chance.randint(0, 3))}
        if depth < 4 and choice < 0.3:
            return [self.any(depth + 1) for _ in range(self.chance.randint(0, 3))]
        return self.chance.choice([None, True, False, self.number(), self.text()])

    def value(self, shape: JsonShape) -> Any:
        chance, kind = self.chance, shape.kind
        if chance.random() < 0.06:
            return None
        if kind == OBJECT:
            found = [(name, self.value(child)) for name, child in shape.children if chance.random() < 0.9]
            if chance.random() < 0.2:
                chance.shuffle(found)
                found.append(("unknown" + self.text(), self.any()))
            return dict(found)
        if kind in (LIST, MAP):
            found = [self.value(shape.children[0][1]) for _ in range(chance.choice([0, 1, 2, 3, 30]))]
            return (
                found if kind == LIST else {f"{place}{self.text()}": each for place, each in enumerate(found)}
            )
        if kind == INTEGER:
            return chance.choice([0, -7, 2**63 - 1, -(2**63), 2.0, chance.randint(-(2**63), 2**63 - 1)])
        simple = {
            TEXT: self.any,
            STRING: self.text,
            NUMBER: self.number,
            BOOLEAN: lambda: chance.random() < 0.5,
        }
        return simple[kind]() if kind in simple else None

    def row(self, shape: JsonShape) -> bytes:
        chance = self.chance
        separators = chance.choice([(",", ":"), (", ", ": "), (" ,\n", " :  ")])
        text = json.dumps(self.value(shape), ensure_ascii=chance.random() < 0.5, separators=separators)
        row = bytearray(text.encode())
        for _ in range(chance.choice([0, 0, 0, 1, 2])):
            place = chance.randrange(len(row) + 1)
            row[place : place + chance.randint(0, 2)] = bytes(chance.choices(NOISE, k=chance.randint(0, 2)))
        return bytes(row)


def read(shape: JsonShape, rows: list[bytes]) -> tuple[dict[int, Any], set[int]]:
    """Return a dict from row to the decoded value, and the rows that the compiled decoder leaves."""
    sizes = np.array([len(row) for row in rows], dtype=np.int64)
    ends = np.cumsum(sizes)
    found: dict[int, Any] = {}
    odd: set[int] = set()
    for chunk in JsonProgram(shape).read(
        np.frombuffer(b"".join(rows) or b"\0", np.uint8), ends - sizes, ends
    ):
        chunk.array.validate(full=True)
        found.update(zip(chunk.rows.tolist(), chunk.array.to_pylist(), strict=True))
        odd.update(chunk.odd.tolist())
    assert not odd & found.keys()
    assert len(odd) + len(found) == len(rows)
    return found, odd


@for_each(range(40))
def test_what_the_loop_reads_is_what_pythons_parser_makes_of_it(seed: int) -> None:
    maker = Maker(seed)
    shape = maker.shape()
    rows = [maker.row(shape) for _ in range(40)]
    found, _ = read(shape, rows)
    for row, value in found.items():
        (expected,) = pa.array([fitted(loaded(rows[row]), shape)], shape.type).to_pylist()
        assert repr(value) == repr(expected), rows[row]


@for_each(range(12))
def test_columns_of_all_rows_are_those_of_pythons_parser(seed: int) -> None:
    schema = {
        "properties": {
            "id": {"type": "integer"},
            "price": {"type": "number"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "to": {"properties": {"city": {"type": "string"}, "any": {}}},
        }
    }
    shape = shape_of(schema)
    maker = Maker(1000 + seed)
    rows = [maker.row(shape) for _ in range(60)]
    decoded = from_schema(pa.array(rows, pa.binary()), "json", schema=json.dumps(schema))
    values, dead = [], []
    for number, row in enumerate(rows):
        try:
            values += pa.array([fitted(loaded(row), shape)], shape.type).to_pylist()
        except DecodeError as error:
            dead.append((number, str(error)))
        except UnicodeEncodeError:
            dead.append((number, HALF_PAIR))
    assert repr(decoded.values.to_pylist()) == repr(values)
    assert [(each["row"], each["reason"]) for each in decoded.dead.to_pylist()] == dead


def shape_of(schema: dict[str, Any]) -> JsonShape:
    return shape_of_schema(schema, {})


ROW = JsonShape(
    OBJECT,
    (
        ("id", JsonShape(INTEGER)),
        ("price", JsonShape(NUMBER)),
        ("name", JsonShape(STRING)),
        ("ok", JsonShape(BOOLEAN)),
        ("größe", JsonShape(LIST, (("", JsonShape(INTEGER)),))),
        ("counts", JsonShape(MAP, (("", JsonShape(NUMBER)),))),
        ("more", JsonShape(TEXT)),
        ("to", JsonShape(OBJECT, (("city", JsonShape(STRING)),))),
    ),
)
USUAL = [
    {"id": -(2**62), "price": 1 / 3, "name": "a\n\u00e9\U0001f600", "ok": False, "größe": [1, None, 2]},
    {"to": {"city": "Bonn", "zip": "x"}, "counts": {"a": 1, "b": 2.5e-7}, "more": [1, {"x": [None, True]}]},
    {"unknown": {"a": [{"b": "\u20ac"}] * 3, "n": 12345678901234567890123}, "id": None, "name": ""},
    {},
]


@pytest.mark.parametrize("ensure_ascii", [True, False])
@pytest.mark.parametrize("indent", [None, 2])
def test_the_loop_reads_what_writers_usually_write(ensure_ascii: bool, indent: int | None) -> None:
    rows = [json.dumps(row, ensure_ascii=ensure_ascii, indent=indent).encode() for row in USUAL]
    found, odd = read(ROW, rows)
    assert not odd
    assert found[0]["price"] == 1 / 3
    assert found[0]["größe"] == [1, None, 2]
    assert found[1]["counts"] == [("a", 1.0), ("b", 2.5e-7)]
    assert found[1]["more"] == '[1, {"x": [null, true]}]'
    assert found[1]["to"] == {"city": "Bonn"}
    assert found[3] == dict.fromkeys(name for name, _ in ROW.children)


@for_each(
    [
        b'{"id": 1, "id": 2}',
        b'{"counts": {"a": 1, "a": 2}}',
        b'{"counts": {"\\u0061": 1}}',
        b'{"id": 1.0}',
        b'{"id": 01}',
        b'{"id": -}',
        b'{"id": 9223372036854775808}',
        b'{"price": 1e400}',
        b'{"price": 1234567890123456789.5}',
        b'{"price": NaN}',
        b'{"name": "\\ud800"}',
        b'{"name": "a\nb"}',
        b'{"name": "\xff"}',
        b'{"name": "a',
        b'{"name": "\\x"}',
        b'{"more": ' + b"[" * 61 + b"]" * 61 + b"}",
        b'{"x": nul}',
        b'{"ok": truth}',
        b'{"id": 1,}',
        b'{"id": 1} x',
        b'{"id" 1}',
        b"null",
        b"",
        b" ",
        b"[]",
    ]
)
def test_what_is_odd_is_left_and_undone(row: bytes) -> None:
    before, after = b'{"name": "\\n", "counts": {"x": 1}}', b'{"id": 3}'
    found, odd = read(ROW, [before, row, after])
    assert odd == {1}
    assert found[0]["name"] == "\n"
    assert found[0]["counts"] == [("x", 1.0)]
    assert found[2] == {**dict.fromkeys(name for name, _ in ROW.children), "id": 3}


def test_lists_of_any_length_grow_their_room() -> None:
    shape = JsonShape(OBJECT, (("a", JsonShape(LIST, (("", JsonShape(LIST, (("", JsonShape(STRING)),))),))),))
    rows = [{"a": [["x\n"] * inner for inner in range(outer)]} for outer in (0, 3, 40, 1)]
    found, odd = read(shape, [json.dumps(row).encode() for row in rows])
    assert not odd
    assert list(found.values()) == rows


def test_many_rows_are_read_in_pieces_and_odd_ones_come_back_into_their_places() -> None:
    rows = [b'{"id": %d}' % number if number % 1000 else b'{"id": %d.0}' % number for number in range(20_000)]
    found = from_schema(pa.array(rows), "json", schema='{"properties": {"id": {"type": "integer"}}}').whole()
    assert found.field("id").to_pylist() == list(range(20_000))


def test_half_of_a_surrogate_pair_is_a_dead_letter() -> None:
    rows = [b'{"a": "x"}', b'{"a": "\\ud800"}', b'{"a": "y"}', b'{"a": "\\udc00\\ud800"}']
    found = from_schema(pa.array(rows), "json", schema='{"properties": {"a": {"type": "string"}}}')
    assert found.values.to_pylist() == [{"a": "x"}, {"a": "y"}]
    assert found.rows.tolist() == [0, 2]
    assert found.dead["reason"].to_pylist() == [HALF_PAIR] * 2


def test_names_that_json_writes_otherwise_are_left_to_pythons_parser() -> None:
    shape = JsonShape(OBJECT, (('a"', JsonShape(INTEGER)),))
    assert not is_readable(shape)
    found = from_schema(
        pa.array([b'{"a\\"": 5}']), "json", schema=json.dumps({"properties": {'a"': {"type": "integer"}}})
    )
    assert found.whole().to_pylist() == [{'a"': 5}]


def double(text: str) -> float | None:
    """Return the number that the kernels decode, or None where they leave it to Python's parser."""
    data = np.frombuffer(text.encode() + b",", dtype=np.uint8)
    number, power, at, sign = read_number(data, 0, len(data))
    if at < 0:
        return None
    assert at == len(text)
    bits, is_exact = number_bits(number, power, sign, POWERS)
    return struct.unpack("<d", struct.pack("<q", bits))[0] if is_exact else None


def numbers(chance: random.Random) -> str:
    mantissa = chance.getrandbits(53) | 1 << 52
    bits = chance.getrandbits(52) | chance.randint(800, 1250) << 52
    return chance.choice(
        [
            repr(struct.unpack("<d", struct.pack("<Q", bits))[0]),
            f"{chance.randint(0, 10 ** chance.randint(1, 18) - 1)}e{chance.randint(-118, 118)}",
            f"-{chance.uniform(0, 1e6)!r}",
            str((2 * mantissa + 1) * 2 ** chance.randint(0, 4)),  # half-way between two doubles
            f"{(2 * mantissa + 1) // 2}.5",
        ]
    )


def test_numbers_are_the_nearest_doubles() -> None:
    chance = random.Random(7)
    read = 0
    for _ in range(4_000):
        text = numbers(chance)
        found = double(text)
        if found is not None:
            read += 1
            assert repr(found) == repr(float(text)), text
    assert read > 3_000


@pytest.mark.parametrize(
    "text", ["0", "-0", "0.0", "-0.0", "5e-324", "9007199254740993", "1e22", "1e23", "0.1"]
)
def test_numbers_at_the_edges(text: str) -> None:
    found = double(text)
    assert found is None or repr(found) == repr(float(json.loads(text)))


@for_each(["", "-", "01", "1.", ".5", "1e", "1e+", "+1", "1e99999", "1" * 19, "1e300"])
def test_what_is_no_number_or_too_long_is_left(text: str) -> None:
    assert double(text) is None
