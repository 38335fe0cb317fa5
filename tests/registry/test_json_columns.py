"""Tests of decoding JSON values to Arrow columns, with a JSON Schema or with inferred types.

Others test values that do not fit.
"""

from __future__ import annotations

import json
import time
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from for_each import for_each
from penstock.errors import DecodeError
from penstock.registry.decoding import Decoded, from_schema
from penstock.registry.json_schema.shapes import shape_of_schema

ORDER = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "price": {"type": "number"},
        "name": {"type": ["null", "string"]},
        "paid": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "to": {"$ref": "#/$defs/address"},
    },
    "required": ["id"],
    "$defs": {"address": {"type": "object", "properties": {"city": {"type": "string"}}}},
}
FREE = {
    "type": "object",
    "properties": {
        "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
        "either": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
        "maybe": {"oneOf": [{"type": "null"}, {"type": "integer"}]},
        "children": {"type": "array", "items": {"$ref": "#"}},
    },
}


def decode(rows: list[Any], schema: Any = None) -> Decoded:
    data = [row if row is None or isinstance(row, bytes) else json.dumps(row).encode() for row in rows]
    return from_schema(
        pa.array(data, pa.binary()), "json", schema=None if schema is None else json.dumps(schema)
    )


orders = st.fixed_dictionaries(
    {"id": st.integers(-(2**63), 2**63 - 1)},
    optional={
        "price": st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False), st.integers(-99, 99)),
        "name": st.one_of(st.none(), st.text(max_size=5)),
        "paid": st.booleans(),
        "tags": st.lists(st.text(max_size=3), max_size=3),
        "to": st.fixed_dictionaries({}, optional={"city": st.text(max_size=3), "other": st.integers()}),
        "unknown": st.integers(),
    },
)


def in_order_columns(row: dict[str, Any]) -> dict[str, Any]:
    found = {name: row.get(name) for name in ORDER["properties"]}  # type: ignore[attr-defined]
    if found["to"] is not None:
        found["to"] = {"city": found["to"].get("city")}
    return found


@given(st.lists(orders, max_size=6))
def test_values_are_those_that_were_written(rows: list[Any]) -> None:
    assert decode(rows, ORDER).whole().to_pylist() == [in_order_columns(row) for row in rows]


BAD = {
    b"": "no JSON",
    b"{": "no JSON",
    b'{"id": 1}{"id": 2}': "no JSON",
    b'{"id": 1} x}': "no JSON",
    b'{"id": "x"}': 'the value.id is "x", and the schema says integer',
    b'{"id": 1.5}': "schema says integer",
    b'{"id": 9223372036854775808}': "schema says integer",
    b'{"id": 1, "to": {"city": 5}}': "the value.to.city",
    b'{"id": 1, "tags": [1]}': r"the value.tags\[0\]",
    b'{"id": NaN}': "schema says integer",
    b'{"id": 1, "name": "\xff"}': "not UTF-8",
    b"[" * 100_000: "nested too deeply",
    b'{"to":' * 100_000: "nested too deeply",
    b"[1]": "schema says object",
}


@for_each(BAD)
def test_a_row_that_does_not_fit_is_a_dead_letter(row: bytes) -> None:
    import re

    begin = time.monotonic()
    found = decode([{"id": 1}, row, None, {"id": 2}], ORDER)
    assert [value and value["id"] for value in found.values.to_pylist()] == [1, None, 2]
    assert found.rows.tolist() == [0, 2, 3]
    (dead,) = found.dead.to_pylist()
    assert dead["row"] == 1
    assert dead["data"] == row
    assert re.search(BAD[row], dead["reason"])
    assert time.monotonic() - begin < 10


def test_lines_in_values_and_whole_numbers_with_a_point() -> None:
    rows = [b'{\n "id": 1}', b' {"id": 2.0}\n', b'{"id": 3}']
    assert [each["id"] for each in decode(rows, ORDER).whole().to_pylist()] == [1, 2, 3]


def test_what_python_writes_for_no_number_is_taken() -> None:
    found = decode([b'{"price": NaN}', b'{"price": -Infinity}'], ORDER).whole().to_pylist()
    assert str([each["price"] for each in found]) == "[nan, -inf]"


def test_two_values_in_a_row_beside_an_empty_one_are_not_shifted() -> None:
    found = decode([b'{"id": 1}', b'{"id": 2}{"id": 3}', b"", b'{"id": 4}'], ORDER)
    assert [each["id"] for each in found.values.to_pylist()] == [1, 4]
    assert found.dead["row"].to_pylist() == [1, 2]


def test_what_has_no_single_type_is_text_or_a_map() -> None:
    found = decode(
        [
            {"counts": {"a": 1, "b": None}, "either": "x", "maybe": 1, "children": [{"maybe": 2}]},
            {"either": 7, "maybe": None},
        ],
        FREE,
    ).whole()
    assert found.to_pylist() == [
        {
            "counts": [("a", 1), ("b", None)],
            "either": '"x"',
            "maybe": 1,
            "children": ['{"maybe": 2}'],
        },
        {"counts": None, "either": "7", "maybe": None, "children": None},
    ]


def test_types_are_inferred_without_a_schema() -> None:
    found = decode([{"a": 1, "t": "2026-01-31"}, {"a": 2.5, "b": {"c": ["x"]}}]).whole()
    assert found.to_pylist() == [
        {"a": 1.0, "t": "2026-01-31", "b": None},
        {"a": 2.5, "t": None, "b": {"c": ["x"]}},
    ]


def test_values_of_several_types_become_text() -> None:
    found = decode([{"a": 1}, {"a": "x"}, {"a": [1, {"b": None}]}, b"no"])
    assert [each["a"] for each in found.values.to_pylist()] == ["1", '"x"', '[1, {"b": null}]']
    assert found.dead["row"].to_pylist() == [3]


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"$ref": "#/nowhere"}, "not there"),
        ({"$ref": "other.json"}, "none of its references"),
        ({"properties": {"a": 5}}, "no JSON Schema"),
    ],
)
def test_what_is_no_schema_says_why(schema: Any, message: str) -> None:
    with pytest.raises(DecodeError, match=message):
        shape_of_schema(schema, {})


def test_a_reference_to_another_schema() -> None:
    other = {"$id": "https://example.com/a.json", "type": "object", "properties": {"x": {"type": "integer"}}}
    shape = shape_of_schema({"properties": {"a": {"$ref": "https://example.com/a.json"}}}, {"a.json": other})
    assert shape.type == pa.struct([pa.field("a", pa.struct([pa.field("x", pa.int64())]))])
