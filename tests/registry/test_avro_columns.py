"""Tests of decoding Avro values to Arrow columns, compared with fastavro.

They include schema evolution and rows that are no valid values.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from for_each import for_each
from penstock.errors import ConfigError
from penstock.registry.avro.program import UnresolvableError, compile_program
from penstock.registry.avro.schema import SchemaError, as_json, parse_avro
from penstock.registry.columns.span_kernels import BAD_TEXT
from penstock.registry.decoding import Decoded, from_schema
from registry import avro_schemas as drawn

SLOW = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], deadline=None)


def decode(rows: list[bytes | None], schema: Any) -> Decoded:
    """Decode Avro values without a registry prefix, all with one schema."""
    return from_schema(pa.array(rows, pa.binary()), "avro", schema=json.dumps(schema))


def between(writer: Any, reader: Any, rows: list[bytes]) -> tuple[list[Any], dict[int, int]]:
    """Decode values of a writer's schema to columns of a reader's schema.

    Return the values, and a dict from each row that cannot be decoded to its reason.
    """
    from penstock.registry.avro.columns import read_columns

    program = compile_program(parse_avro(json.dumps(writer)), parse_avro(json.dumps(reader)))
    data = np.frombuffer(b"".join(rows) + b"\0" * 8, dtype=np.uint8)
    ends = np.cumsum([len(row) for row in rows])
    reasons = np.zeros(len(rows), dtype=np.uint8)
    starts = ends - np.array([len(row) for row in rows])
    array, _ = read_columns(program, data, starts, ends, reasons)
    array.validate(full=True)
    return array.to_pylist(), {int(row): int(reasons[row]) for row in np.flatnonzero(reasons)}


@SLOW
@given(st.data())
def test_values_are_those_that_were_written(data: st.DataObject) -> None:
    made = data.draw(drawn.schemas())
    rows = data.draw(st.lists(drawn.values(made), max_size=5))
    found = decode([drawn.encode(made, row) for row in rows], made)
    found.values.validate(full=True)
    assert found.whole().to_pylist() == [drawn.expected(made, row) for row in rows]


@SLOW
@given(st.data())
def test_damaged_values_are_dead_letters_and_harm_no_other(data: st.DataObject) -> None:
    made = data.draw(drawn.schemas())
    rows = data.draw(st.lists(drawn.values(made), min_size=3, max_size=6))
    written: list[bytes] = [drawn.encode(made, row) for row in rows]
    damaged = data.draw(st.integers(0, len(rows) - 1))
    old = written[damaged]
    new = data.draw(st.one_of(st.binary(max_size=30), st.integers(0, len(old)).map(lambda cut: old[:cut])))
    written[damaged] = new
    found = decode([*written], made)
    found.values.validate(full=True)
    others = [drawn.expected(made, row) for number, row in enumerate(rows) if number != damaged]
    kept = [value for value, row in zip(found.values.to_pylist(), found.rows, strict=True) if row != damaged]
    assert kept == others
    assert set(found.rows.tolist()) | set(found.dead["row"].to_pylist()) == set(range(len(rows)))
    if not found.is_whole:
        assert found.dead["data"].to_pylist() == [new]


STRINGS_IN_PYTHON = """
import pyarrow as pa
from penstock.registry.decoding import from_schema
texts = ["a" * size + end for size in range(12) for end in ("", "\xe9", "\U0001f600")]
values = [bytes([2 * len(text.encode())]) + text.encode() for text in texts]
assert from_schema(pa.array(values), "avro", schema='"string"').values.to_pylist() == texts
"""


def test_strings_are_read_without_compiled_kernels() -> None:
    """Without compiled kernels, positions in the data are numpy integers, which overflow at 64 bits."""
    command = [sys.executable, "-W", "error", "-c", STRINGS_IN_PYTHON]
    environment = os.environ | {"PENSTOCK_PURE_PYTHON": "1"}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize(
    ("kind", "logical", "day"), [("int", "time-millis", 86_400_000), ("long", "time-micros", 86_400_000_000)]
)
def test_a_time_beyond_its_day_is_a_dead_letter(kind: str, logical: str, day: int) -> None:
    """Arrow has no such times: a single one would make the whole column invalid."""
    made = {"type": kind, "logicalType": logical}
    numbers = [0, -1, day - 1, day, 5]
    found = decode([drawn.encode(kind, number) for number in numbers], made)
    found.values.validate(full=True)
    assert found.values.cast(pa.int32() if kind == "int" else pa.int64()).to_pylist() == [0, day - 1, 5]
    assert found.dead["row"].to_pylist() == [1, 3]
    assert set(found.dead["reason"].to_pylist()) == {"a time of day is negative, or not below 24 hours"}


def record(*fields: Any, name: str = "R", **more: Any) -> dict[str, Any]:
    made = [
        {"name": each[0], "type": each[1], **({"default": each[2]} if len(each) > 2 else {})}
        for each in fields
    ]
    return {"type": "record", "name": name, "fields": made, **more}


COLOURS = {"type": "enum", "name": "Colour", "symbols": ["RED", "BLUE"]}
EVOLUTIONS = {
    "a field with a default is added": (record(("a", "int")), record(("a", "int"), ("b", "string", "x"))),
    "a field is removed": (record(("a", "int"), ("b", "string")), record(("b", "string"))),
    "fields change places": (record(("a", "int"), ("b", "string")), record(("b", "string"), ("a", "int"))),
    "int becomes long": (record(("a", "int")), record(("a", "long"))),
    "int becomes double": (record(("a", "int")), record(("a", "double"))),
    "long becomes float": (record(("a", "long")), record(("a", "float"))),
    "float becomes double": (record(("a", "float")), record(("a", "double"))),
    "string becomes bytes": (record(("a", "string")), record(("a", "bytes"))),
    "a value becomes optional": (record(("a", "int")), record(("a", ["null", "int"]))),
    "an optional value is widened": (record(("a", ["null", "int"])), record(("a", ["null", "long"], None))),
    "a union gets a branch": (record(("a", ["int", "string"])), record(("a", ["null", "string", "int"]))),
    "defaults of all kinds": (
        record(("a", "int")),
        record(
            ("b", "double", 1.5),
            ("c", "float", 0.25),
            ("d", ["null", "int"], None),
            ("e", ["string", "null"], "é"),
            ("f", {"type": "array", "items": "int"}, [1, 2, 3]),
            ("g", {"type": "map", "values": "string"}, {"k": "v", "l": ""}),
            ("h", COLOURS, "BLUE"),
            ("j", record(("x", "long"), ("y", "string", "in"), name="In"), {"x": 7, "y": "in"}),
            ("k", "boolean", True),
        ),
    ),
    "lists are widened inside": (
        record(("a", {"type": "array", "items": record(("x", "int"), ("z", "string"), name="In")})),
        record(("a", {"type": "array", "items": record(("x", "long"), ("y", "int", 5), name="In")})),
    ),
}


@pytest.mark.parametrize("name", EVOLUTIONS)
@SLOW
@given(data=st.data())
def test_evolutions_are_resolved_as_by_fastavro(name: str, data: st.DataObject) -> None:
    writer, reader = EVOLUTIONS[name]
    rows = data.draw(st.lists(drawn.values(writer), min_size=1, max_size=4))
    written = [drawn.encode(writer, row) for row in rows]
    found, dead = between(writer, reader, written)
    assert not dead
    theirs = [fastavro.schemaless_reader(io.BytesIO(row), writer, reader) for row in written]
    assert [as_fastavro(reader, row) for row in found] == [
        as_fastavro(reader, row, maps=False) for row in theirs
    ]


def as_fastavro(made: Any, value: Any, *, maps: bool = True) -> Any:
    """Return a column's value as fastavro returns it; `float` numbers are rounded to 32 bits."""
    if isinstance(made, list):
        others = [each for each in made if each != "null"]
        if value is None or len(others) == 1:
            return None if value is None else as_fastavro(others[0], value, maps=maps)
        if maps:
            chosen = [each for each in value.values() if each is not None]
            return chosen[0] if chosen else None
        return value
    kind = made if isinstance(made, str) else made["type"]
    if kind == "record":
        return {
            each["name"]: as_fastavro(each["type"], value[each["name"]], maps=maps) for each in made["fields"]
        }
    if kind == "array":
        return [as_fastavro(made["items"], each, maps=maps) for each in value]
    if kind == "map":
        return {
            key: as_fastavro(made["values"], each, maps=maps)
            for key, each in (value if maps else value.items())
        }
    if kind == "float":
        return drawn.single(value)
    return value


def test_defaults_of_bytes_and_of_fields_within_a_default() -> None:
    inner = record(("x", "long"), ("y", "string", "in"), name="In")
    reader = record(("i", "bytes", "\u00ff\u0001"), ("j", inner, {"x": 7}))
    assert (
        between(record(("a", "int")), reader, [varint(1)] * 2)[0]
        == [{"i": b"\xff\1", "j": {"x": 7, "y": "in"}}] * 2
    )


def test_a_branch_that_the_reader_lacks_makes_a_dead_letter_of_its_rows_alone() -> None:
    writer, reader = record(("a", ["int", "string"])), record(("a", "long"))
    rows = [drawn.encode(writer, {"a": each}) for each in [(0, 1), (1, "x"), (0, 3)]]
    assert between(writer, reader, rows) == ([{"a": 1}, {"a": 3}], {1: 8})


def test_bytes_that_are_read_as_text_and_are_none_are_dead_letters() -> None:
    """Java would replace bytes that are not UTF-8, and fastavro would raise an error."""
    rows = [varint(len(each)) + each for each in (b"\xff\xfe", "Zürich".encode())]
    assert between("bytes", "string", rows) == (["Zürich"], {0: BAD_TEXT})


def test_a_symbol_that_the_reader_lacks() -> None:
    other = {"type": "enum", "name": "Colour", "symbols": ["BLUE", "NONE"]}
    rows = [drawn.encode(COLOURS, "RED"), drawn.encode(COLOURS, "BLUE")]
    assert between(COLOURS, other, rows) == (["BLUE"], {0: 8})
    assert between(COLOURS, {**other, "default": "NONE"}, rows) == (["NONE", "BLUE"], {})


@pytest.mark.parametrize(
    ("writer", "reader", "message"),
    [
        ("string", "int", "string is written, and the reader has int"),
        (record(("a", "int")), record(("b", "int")), "field b is not written and has no default"),
        ("long", "int", "long is written"),
        (
            {"type": "long", "logicalType": "timestamp-millis"},
            {"type": "long", "logicalType": "timestamp-micros"},
            "timestamp-millis is written",
        ),
        (["null", "int"], "string", "null is written"),
    ],
)
def test_what_cannot_be_resolved_says_where(writer: Any, reader: Any, message: str) -> None:
    with pytest.raises(UnresolvableError, match=message):
        compile_program(parse_avro(json.dumps(writer)), parse_avro(json.dumps(reader)))


TREE = record(("v", "int"), ("next", ["null", "Node"]), ("bytes", "bytes"), name="Node")


def test_a_type_that_holds_itself_is_json_text() -> None:
    leaf = {"v": 3, "next": (0, None), "bytes": b"\xff"}
    made = {"v": 1, "next": (1, {"v": 2, "next": (1, leaf), "bytes": b""}), "bytes": b"x"}

    def encoded(node: Any) -> bytes:
        branch, inner = node["next"]
        head = drawn.encode("int", node["v"]) + drawn.encode("long", branch)
        return head + (encoded(inner) if inner else b"") + drawn.encode("bytes", node["bytes"])

    found = decode([encoded(made), encoded(leaf)], TREE).whole().to_pylist()
    assert found[1] == {"v": 3, "next": None, "bytes": b"\xff"}
    assert json.loads(found[0]["next"]) == {
        "v": 2,
        "next": {"v": 3, "next": None, "bytes": "\u00ff"},
        "bytes": "",
    }
    # The part that is not wanted is passed over all the same.
    assert between(TREE, record(("bytes", "bytes")), [encoded(made)]) == ([{"bytes": b"x"}], {})


def varint(number: int) -> bytes:
    return drawn.encode("long", number)


LISTS = record(("a", {"type": "array", "items": "null"}), ("b", {"type": "array", "items": "string"}))
HOSTILE = {
    "a list of nothing, as long as can be": (LISTS, varint(2**62) + varint(0) + varint(0), "more items"),
    "a list with a negative size": (LISTS, varint(-(2**63)) + varint(1), "more items"),
    "a text longer than the value": ("string", varint(2**40) + b"abc", "ends too early"),
    "a text of negative size": ("string", varint(-1), "size is negative"),
    "a number without an end": ("long", b"\xff" * 11, "does not fit"),
    "an int of 64 bits": ("int", varint(2**31), "does not fit"),
    "a text that is no UTF-8": ("string", varint(2) + b"\xc3\x28", "not UTF-8"),
    "a surrogate in a text": ("string", varint(3) + b"\xed\xa0\x80", "not UTF-8"),
    "a branch that is none": (["null", "int"], varint(2), "no such branch"),
    "a negative branch": (["null", "int", "string"], varint(-1), "no such branch"),
    "a boolean of 2": ("boolean", b"\2", "boolean"),
    "a tail": ("boolean", b"\1x", "behind the value"),
    "a value of no bytes": ("double", b"", "too early"),
    "a decimal of 17 bytes": (
        {"type": "bytes", "logicalType": "decimal", "precision": 9},
        varint(17) + b"\0" * 17,
        "16 bytes",
    ),
    "records in records without end": (TREE, (varint(1) + varint(1)) * 500, "nested too deeply"),
}


@for_each(HOSTILE)
def test_hostile_values_are_dead_letters(name: str) -> None:
    made, row, reason = HOSTILE[name]
    begin = time.monotonic()
    found = decode([row], made)
    assert found.values.to_pylist() == []
    assert reason in found.dead["reason"][0].as_py()
    assert time.monotonic() - begin < 5


def test_many_items_in_few_rows_and_rows_with_many_items() -> None:
    made = record(("a", {"type": "array", "items": {"type": "map", "values": "long"}}), ("b", "string"))
    rows = [{"a": [{"x": 1, "y": number}] * (number % 300), "b": str(number)} for number in range(700)]
    found = decode([drawn.encode(made, row) for row in rows], made).whole()
    assert found.to_pylist() == [drawn.expected(made, row) for row in rows]


def test_nulls_stay_null_and_dead_rows_go() -> None:
    found = decode([varint(5), None, b"", None, varint(7)], "long")
    assert found.values.to_pylist() == [5, None, None, 7]
    assert found.rows.tolist() == [0, 1, 3, 4]
    assert found.dead.to_pylist() == [{"row": 2, "reason": "the value ends too early", "data": b""}]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "no JSON"),
        ('{"type": "record", "name": "R"}', "has no fields"),
        ('["null", "null"]', "null twice"),
        ('{"type": "fixed", "name": "F", "size": -1}', "size -1"),
        ('"Unknown"', "no type 'Unknown'"),
        ('{"type": "enum", "name": "E", "symbols": ["a", "a"]}', "one twice"),
        (
            '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int", "default": "x"}]}',
            "default",
        ),
        ("[" * 500 + "]" * 500, "nested deeper"),
    ],
)
def test_what_is_no_schema_says_why(text: str, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        parse_avro(text)


def test_a_schema_that_doubles_at_each_level_is_refused() -> None:
    text = {"type": "record", "name": "R0", "fields": [{"name": "a", "type": "int"}]}
    made: Any = text
    for level in range(1, 30):
        made = record(("a", made), ("b", f"R{level - 1}"), name=f"R{level}")
    parsed = parse_avro(json.dumps(made))
    with pytest.raises(SchemaError, match="more than"):
        compile_program(parsed, parsed)


@SLOW
@given(drawn.schemas())
def test_a_schema_is_written_and_parsed_again(made: Any) -> None:
    parsed = parse_avro(json.dumps(made))
    assert as_json(parse_avro(json.dumps(as_json(parsed)))) == as_json(parsed)


def test_without_schema_or_registry_there_is_nothing_to_go_by() -> None:
    with pytest.raises(ConfigError, match="need a registry"):
        from_schema(pa.array([b"x"]), "avro")
    with pytest.raises(ConfigError, match="column of bytes"):
        from_schema(pa.array([1]), "avro", schema='"int"')
    with pytest.raises(ConfigError, match="one of avro"):
        from_schema(pa.array([b"x"]), "arvo", schema='"int"')
