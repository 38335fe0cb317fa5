"""Tests of compiled code that encodes rows to Avro: it gives fastavro's bytes or calls fastavro."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import io
import json
import random
import uuid
from typing import Any

import fastavro
import pytest

from penstock.errors import EncodeError
from penstock.records.kernels.compiled import COMPILED
from penstock.registry import AvroSerializer, Schema, SerializationContext
from penstock.registry.avro.row_program import row_program, write_row
from registry.fake_registry import FakeRegistry

needs_compiled = pytest.mark.skipif(not COMPILED, reason="the package was installed without a C compiler")
UTC = dt.UTC


class Colour(enum.StrEnum):
    red = "red"


class Number(int):
    pass


class Row(dict):  # type: ignore[type-arg]
    pass


MISFITS = [
    None,
    True,
    1,
    -(2**31) - 1,
    2**63,
    1.5,
    1e39,
    float("nan"),
    "x",
    "\ud800",
    b"x",
    b"xyz",
    [1],
    ("string", "x"),
    {"a": 1},
    {1: 1},
    {},
    Number(5),
    Colour.red,
    Row(a=1),
    dt.datetime(2026, 1, 2, tzinfo=UTC),
    dt.date(2026, 1, 2),
    decimal.Decimal("1.5"),
    object(),
]


class Maker:
    """A generator of random schemas and rows, determined by a seed."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.names = 0

    def name(self) -> str:
        self.names += 1
        return f"T{self.names}"

    def schema(self, depth: int = 0) -> Any:
        choice = self.chance.randrange(8)
        if depth == 0 or (depth < 3 and choice == 0):
            fields = [{"name": f"f{place}", "type": self.schema(depth + 1)} for place in range(4)]
            for field in fields:
                if isinstance(field["type"], list) and field["type"][0] == "null":
                    field["default"] = None
            return {"type": "record", "name": self.name(), "fields": fields}
        if depth < 3 and choice == 1:
            return {"type": "array", "items": self.schema(depth + 1)}
        if depth < 3 and choice == 2:
            return {"type": "map", "values": self.schema(depth + 1)}
        if choice == 3:
            return self.chance.choice([["null", self.leaf()], [self.leaf(), "null"]])
        return self.leaf()

    def leaf(self) -> Any:
        return self.chance.choice(
            [
                *("boolean", "int", "long", "float", "double", "string", "bytes"),
                {"type": "enum", "name": self.name(), "symbols": ["red", "blue"]},
                {"type": "fixed", "name": self.name(), "size": 3},
                {"type": "long", "logicalType": "timestamp-micros"},
                {"type": "int", "logicalType": "date"},
                {"type": "string", "logicalType": "uuid"},
                {"type": "bytes", "logicalType": "decimal", "precision": 8, "scale": 2},
            ]
        )

    def value(self, made: Any) -> Any:
        chance = self.chance
        if isinstance(made, list):
            return (
                None if chance.random() < 0.3 else self.value(next(each for each in made if each != "null"))
            )
        kind = made["type"] if isinstance(made, dict) else made
        logical = made.get("logicalType") if isinstance(made, dict) else None
        if kind == "record":
            return {field["name"]: self.value(field["type"]) for field in made["fields"]}
        if kind == "array":
            return [self.value(made["items"]) for _ in range(chance.choice([0, 1, 3, 40]))]
        if kind == "map":
            return {f"k{place}é": self.value(made["values"]) for place in range(chance.choice([0, 1, 3]))}
        if logical == "timestamp-micros" and chance.random() < 0.5:
            return dt.datetime(2026, 1, 2, 3, 4, 5, chance.randrange(10**6), tzinfo=UTC)
        if logical == "date" and chance.random() < 0.5:
            return dt.date(2026, 1, chance.randint(1, 31))
        if logical == "uuid":
            return chance.choice([uuid.UUID(int=chance.getrandbits(128)), str(uuid.UUID(int=5))])
        if logical == "decimal":
            return decimal.Decimal(chance.randint(-(10**7), 10**7)) / 100
        return {
            "boolean": chance.random() < 0.5,
            "int": chance.choice([0, 2**31 - 1, -(2**31), chance.randint(-99, 99)]),
            "long": chance.choice([0, 2**63 - 1, -(2**63), chance.randint(-(2**40), 2**40)]),
            "float": chance.choice([0.0, -1.5, float("inf"), 0.1]),
            "double": chance.choice([-0.0, 1 / 3, float("-inf")]),
            "string": chance.choice(["", "ab", "日本" * 700]),
            "bytes": bytes(chance.randrange(300)),
            "enum": chance.choice(["red", "blue"]),
            "fixed": b"\0ab",
        }[kind]

    def spoilt(self, row: Any) -> Any:
        """Return a copy of a row with one value of a wrong type, a missing field, or an additional one."""
        if isinstance(row, dict) and row and self.chance.random() < 0.8:
            key = self.chance.choice(list(row))
            found = dict(row)
            if self.chance.random() < 0.2:
                del found[key]
            elif self.chance.random() < 0.1:
                found["more"] = 1
            else:
                found[key] = self.spoilt(found[key])
            return found
        return self.chance.choice(MISFITS)


def by_fastavro(made: Any, row: Any) -> bytes | None:
    out = io.BytesIO()
    try:
        fastavro.schemaless_writer(out, fastavro.parse_schema(made), row)
    except Exception:
        return None
    return out.getvalue()


@needs_compiled
@pytest.mark.parametrize("seed", range(40))
def test_rows_are_written_as_by_fastavro(seed: int) -> None:
    maker = Maker(seed)
    made = maker.schema()
    program = row_program(json.dumps(made), ())
    assert program is not None
    for _ in range(5):
        row = maker.value(made)
        expected = by_fastavro(made, row)
        assert expected is not None
        assert write_row(program, row, b"\0p") == b"\0p" + expected


@needs_compiled
@pytest.mark.parametrize("seed", range(40))
def test_rows_that_are_unusual_are_written_as_by_fastavro_or_left(seed: int) -> None:
    maker = Maker(1000 + seed)
    made = maker.schema()
    program = row_program(json.dumps(made), ())
    for _ in range(20):
        row = maker.spoilt(maker.value(made))
        found = write_row(program, row, b"")
        assert found is None or found == by_fastavro(made, row), row


@needs_compiled
@pytest.mark.parametrize(
    "made",
    [
        ["null", "int", "string"],
        {"type": "record", "name": "N", "fields": [{"name": "next", "type": ["null", "N"]}]},
        {
            "type": "record",
            "name": "N",
            "fields": [{"name": "a", "type": ["null", {"type": "map", "values": "int"}]}],
        },
        {"type": "recrod"},
    ],
)
def test_schemas_that_are_left_to_fastavro(made: Any) -> None:
    assert row_program(json.dumps(made), ()) is None


@needs_compiled
def test_logical_types_of_a_program_are_left_to_fastavro(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(fastavro.write.LOGICAL_WRITERS, "string-shout", lambda data, schema: data.upper())
    assert row_program('"string"', ()) is None


@needs_compiled
def test_a_row_that_is_too_deep_is_left() -> None:
    made: Any = "int"
    row: Any = 1
    for _ in range(70):
        made, row = {"type": "array", "items": made}, [row]
    program = row_program(json.dumps(made), ())
    assert write_row(program, row, b"") is None


@needs_compiled
def test_arguments_are_checked() -> None:
    for arguments in (([], {}, b""), ((0,), {}, "x"), ((0,), {})):
        with pytest.raises(TypeError):
            write_row(*arguments)


@needs_compiled
def test_an_interrupt_of_a_logical_type_ends_the_call() -> None:
    def stop(value: Any, schema: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_row((14, stop, {}, (3,)), 1.5, b"")


class Registering(FakeRegistry):
    def register(self, subject: str, schema: Schema, *, normalize: bool = False) -> int:
        return self.add(subject, schema)


MADE = {
    "type": "record",
    "name": "R",
    "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": ["null", "string"], "default": None}],
}


def test_serializers_of_several_topics_and_rows_that_do_not_fit() -> None:
    registry = Registering()
    write = AvroSerializer(registry, json.dumps(MADE))  # type: ignore[arg-type]
    one, other = SerializationContext("one"), SerializationContext("other", "key")
    assert write({"a": 5}, one) == b"\0\0\0\0\1\x0a\0"
    assert write({"a": 5, "b": "x"}, other) == b"\0\0\0\0\2\x0a\2\2x"
    assert write({"a": -1, "b": None}, one) == b"\0\0\0\0\1\1\0"
    assert list(registry.subjects) == ["one-value", "other-key"]
    with pytest.raises(EncodeError, match="does not fit"):
        write({"a": "x"}, one)
    with pytest.raises(EncodeError, match="does not fit"):
        write({}, one)


def test_subjects_of_a_strategy_of_ones_own_are_asked_for_each_row() -> None:
    registry = Registering()
    subjects = iter("xy")
    write = AvroSerializer(
        registry,  # type: ignore[arg-type]
        json.dumps(MADE),
        conf={"subject.name.strategy": lambda context, record: next(subjects)},
    )
    context = SerializationContext("t")
    assert write({"a": 5}, context) == b"\0\0\0\0\1\x0a\0"
    assert write({"a": 5}, context) == b"\0\0\0\0\2\x0a\0"
