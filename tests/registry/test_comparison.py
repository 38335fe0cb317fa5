"""Tests of comparing two schemas, which lists the parts that differ."""

from __future__ import annotations

import json
from typing import Any

import pytest

from penstock.errors import DecodeError
from penstock.registry.comparison import differences, misreadings
from penstock.registry.schemas import Schema


def told(old: str, new: str, kind: str) -> list[str]:
    return [str(each) for each in differences(Schema(old, kind), {}, Schema(new, kind), {})]


def record(*fields: dict[str, Any]) -> str:
    return json.dumps({"type": "record", "name": "Order", "fields": fields})


PLACE = {"type": "record", "name": "Place", "fields": [{"name": "city", "type": "string"}]}
WIDER = {"type": "record", "name": "Place", "fields": [{"name": "city", "type": "bytes"}]}
SELF = {"name": "next", "type": ["null", "Order"], "default": None}


def test_parts_of_avro() -> None:
    price = {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}
    kinds = {"type": "enum", "name": "K", "symbols": ["A"]}
    old = record(
        {"name": "id", "type": "int"},
        {"name": "gone", "type": kinds},
        {"name": "places", "type": {"type": "array", "items": PLACE}},
        SELF,
    )
    new = record(
        {"name": "id", "type": "long"},
        {"name": "price", "type": ["null", price], "default": None},
        {"name": "places", "type": {"type": "map", "values": WIDER}},
        SELF,
    )
    assert told(old, new, "AVRO") == [
        "~ id: long, was int",
        "+ price: null | bytes (decimal 5, 2), default null",
        "~ places: map of record Place, was array of record Place",
        "+ places{}.city: bytes",
        "- gone: enum K of A",
        "- places[].city: string",
    ]
    assert told(old, old, "AVRO") == []
    assert told('"int"', '"long"', "AVRO") == ["~ (whole): long, was int"]


def test_parts_of_json_schema() -> None:
    old = {
        "type": "object",
        "title": "Old",
        "required": ["id"],
        "properties": {"id": {"type": "integer"}, "tags": {"type": "array", "items": {"type": "string"}}},
    }
    new = {
        "type": "object",
        "title": "New",
        "properties": {
            "id": {"type": "integer", "minimum": 0},
            "tags": {"type": "array", "items": {"type": ["string", "null"]}},
            "any": True,
        },
        "additionalProperties": False,
    }
    assert told(json.dumps(old), json.dumps(new), "JSON") == [
        "~ id: integer, minimum 0, was integer, required",
        '~ tags[]: type ["string", "null"], was string',
        "+ any: true",
        "+ {}: false",
    ]


def test_parts_of_protobuf() -> None:
    old = """syntax = "proto3"; message Order { int32 id = 1; string city = 2; Kind kind = 3;
        enum Kind { A = 0; } message Item { int64 n = 1; } }"""
    new = """syntax = "proto3"; message Order { int64 id = 1; optional string city = 2; Kind kind = 3;
        enum Kind { A = 0; B = 1; } repeated Item items = 4; map<string, Item> named = 5;
        oneof one { string x = 6; int32 y = 7; } message Item { int64 n = 1; } }"""
    assert told(old, new, "PROTOBUF") == [
        "~ Order.id: int64 = 1, was int32 = 1",
        "~ Order.city: optional string = 2, was string = 2",
        "+ Order.items: repeated Order.Item = 4",
        "+ Order.named: map of string to Order.Item = 5",
        "+ Order.x: string in oneof one = 6",
        "+ Order.y: int32 in oneof one = 7",
        "~ enum Order.Kind: A = 0, B = 1, was A = 0",
    ]


def test_schemas_of_two_types_are_not_compared() -> None:
    with pytest.raises(DecodeError, match="the old schema is of type AVRO, the new one of type JSON"):
        differences(Schema('"int"'), {}, Schema("true", "JSON"), {})
    assert misreadings(Schema('"long"'), {}, Schema('"int"'), {}) == []
    assert "TYPE_MISMATCH" in misreadings(Schema('"int"'), {}, Schema('"long"'), {})[0]
