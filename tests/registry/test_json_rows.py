"""Tests of rows given as JSON text and encoded to Avro, JSON or Protobuf; some do not fit."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from for_each import for_each
from penstock.cli.decoded_values import json_text
from penstock.errors import ConfigError, EncodeError
from penstock.registry import Registry, RegistryClient, Schema, from_schema
from penstock.registry.json_rows import JsonRows


@pytest.fixture(scope="module")
def client() -> Iterator[RegistryClient]:
    with Registry() as registry:
        yield registry.client()


def record(name: str, **fields: Any) -> dict[str, Any]:
    made = [
        {"name": field, "type": each[0], "default": each[1]} if isinstance(each, tuple) else
        {"name": field, "type": each}
        for field, each in fields.items()
    ]  # fmt: skip
    return {"type": "record", "name": name, "fields": made}


def back(client: RegistryClient, kind: str, data: bytes | None) -> Any:
    found = from_schema(pa.array([data], pa.binary()), kind, client).whole()
    return json.loads(json_text(found.to_pylist()[0]))


def test_every_type_of_avro_goes_from_json_to_json(client: RegistryClient) -> None:
    fixed = {"type": "fixed", "name": "F", "size": 2}
    logical = {
        "day": {"type": "int", "logicalType": "date"},
        "t1": {"type": "int", "logicalType": "time-millis"},
        "t2": {"type": "long", "logicalType": "time-micros"},
        "m1": {"type": "long", "logicalType": "timestamp-millis"},
        "m2": {"type": "long", "logicalType": "local-timestamp-micros"},
        "price": {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2},
        "uid": {"type": "string", "logicalType": "uuid"},
    }
    schema = record(
        "Order",
        id="long", small="int", ok="boolean", f="float", d="double", s="string", b="bytes", fx=fixed,
        e={"type": "enum", "name": "E", "symbols": ["A", "B"]},
        tags={"type": "array", "items": "string"},
        counts={"type": "map", "values": "int"},
        place=record("Place", city="string"),
        maybe=["null", "int"],
        either=["int", "string", "bytes"],
        which=[record("One", a="int"), record("Two", b="int")],
        left=("int", 7),
        **logical,
    )  # fmt: skip
    row = {
        "id": 1 << 60, "small": -5, "ok": True, "f": 0.5, "d": 1.25, "s": "ü", "b": "AAE=", "fx": "AAE=",
        "e": "B", "tags": ["a"], "counts": {"x": 1}, "place": {"city": "Bern"}, "maybe": None,
        "either": "aaaa", "which": {"b": 3}, "day": "2026-01-31", "t1": "01:02:03.004000",
        "t2": "01:02:03.000004", "m1": "2026-01-31T12:00:00.001+00:00", "m2": "1969-12-31T23:59:59.999999",
        "price": "-1.50", "uid": "12345678-1234-5678-1234-567812345678",
    }  # fmt: skip
    rows = JsonRows("avro", client, schema=Schema(json.dumps(schema)))
    data = rows.encode(json.dumps(row).encode(), "orders")
    found = back(client, "avro", data)
    assert found["which"] == {"One": None, "Two": {"b": 3}}
    assert found["either"] == {"int": None, "string": "aaaa", "bytes": None}
    assert found["counts"] == [["x", 1]]
    assert found["left"] == 7
    assert found["m1"] == "2026-01-31T12:00:00.001000+00:00"
    for name in row.keys() - {"which", "either", "counts", "m1"}:
        assert found[name] == row[name], name
    # What was printed is read again, and the same.
    again = rows.encode(json.dumps(found).encode(), "orders")
    assert again == data
    assert rows.encode(b"null", "orders") is None
    assert rows.encode(None, "orders") is None
    # Numbers of the unit do as well as text.
    numbers = row | {"day": 20484, "t1": 3723004, "m1": 1769860800001, "price": -1.5}
    assert rows.encode(json.dumps(numbers).encode(), "orders") == data


@for_each(
    [
        ("int", 1 << 31, r"\$ is 2147483648: int is needed"),
        ("int", True, r"\$ is true: int"),
        ("int", 1.0, r"\$ is 1.0"),
        ("string", 5, r"string is needed"),
        ("bytes", "ü", r"base64 text is needed"),
        ({"type": "fixed", "name": "F", "size": 3}, "AAE=", "base64 text of 3 bytes"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "B", "one of A is needed"),
        ({"type": "array", "items": "int"}, [1, "x"], r"\$\[1\] is \"x\""),
        ({"type": "map", "values": "int"}, {"k": "x"}, r"\$\.k is \"x\""),
        ({"type": "map", "values": "int"}, [1], "an object is needed"),
        (record("R", a="int"), {"b": 1}, "has a field 'b', which record R lacks; it has a"),
        (record("R", a="int"), {}, "lacks the field 'a' of record R"),
        (record("R", a="int"), "text", "an object for record R"),
        (record("R", a=["null", "int"]), {"a": "x"}, r"\$\.a is \"x\": int is needed"),
        (["int", "boolean"], "x", "one of int, boolean is needed"),
        ({"type": "int", "logicalType": "date"}, "yesterday", "a date as ISO 8601 or a number"),
        ({"type": "long", "logicalType": "timestamp-millis"}, "2026-01-31T12:00:00", "as ISO 8601"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 3, "scale": 1}, "1.55", r"decimal\(3, 1\)"),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 3, "scale": 1},
            "100.0",
            r"decimal\(3, 1\)",
        ),
        ({"type": "bytes", "logicalType": "decimal", "precision": 3, "scale": 1}, "x", "as text or number"),
        ({"type": "string", "logicalType": "uuid"}, "x", "a UUID is needed"),
    ]
)
def test_what_does_not_fit_is_said_with_its_place(
    kind: Any, value: Any, words: str, client: RegistryClient
) -> None:
    client.set_compatibility("NONE")
    rows = JsonRows("avro", client, schema=Schema(json.dumps(kind)))
    with pytest.raises(EncodeError, match=words):
        rows.encode(json.dumps(value).encode(), "misfits")


def test_random_rows_come_back(client: RegistryClient) -> None:
    client.set_compatibility("NONE")
    dice = random.Random(27)

    def some(depth: int, names: list[int]) -> tuple[Any, Any]:
        """Return a random Avro type, and a value of it in plain JSON."""
        kind = dice.randrange(9 if depth < 3 else 5)
        if kind == 5:
            made, value = some(depth + 1, names)
            return {"type": "array", "items": made}, [value] * dice.randrange(3)
        if kind == 6:
            made, value = some(depth + 1, names)
            return {"type": "map", "values": made}, [[f"k{n}", value] for n in range(dice.randrange(3))]
        if kind in (7, 8):
            names.append(0)
            number = len(names)
            parts = {f"f{n}": some(depth + 1, names) for n in range(3)}
            made = record(
                f"R{number}",
                **{name: [["null", each[0]], each[0]][dice.randrange(2)] for name, each in parts.items()},
            )
            nullable = {each["name"] for each in made["fields"] if isinstance(each["type"], list)}
            value = {
                name: None if name in nullable and dice.random() < 0.5 else each[1]
                for name, each in parts.items()
            }
            return made, value
        return dice.choice(
            [
                ("int", dice.randrange(-9, 9)),
                ("long", dice.randrange(-(1 << 62), 1 << 62)),
                ("double", dice.random()),
                ("boolean", True),
                ("string", "abc"),
                ("bytes", "AAE="),
                ({"type": "int", "logicalType": "date"}, "2026-01-31"),
            ]
        )

    for number in range(100):
        made, value = some(0, [])
        made, value = record("Whole", v=made), {"v": value}
        rows = JsonRows("avro", client, schema=Schema(json.dumps(made)))
        assert back(client, "avro", rows.encode(json.dumps(value).encode(), f"random-{number}")) == value


def test_protobuf_and_json_schema(client: RegistryClient) -> None:
    proto = (
        'syntax = "proto3"; message Other { int32 n = 1; } message Order { int64 id = 1; string city = 2; }'
    )
    rows = JsonRows("protobuf", client, schema=Schema(proto, "PROTOBUF"), message="Order")
    data = rows.encode(b'{"id": "7", "city": "Bern"}', "proto")
    assert data is not None
    assert data[5:7] == b"\x02\x02"
    found = from_schema(pa.array([data]), "protobuf", client, message="Order").whole()
    assert found.to_pylist() == [{"id": 7, "city": "Bern"}]
    with pytest.raises(EncodeError, match=r"does not fit message Order: .*size"):
        rows.encode(b'{"size": 1}', "proto")
    text = json.dumps({"type": "object", "properties": {"id": {"type": "integer"}}})
    rows = JsonRows("json", client, schema=Schema(text, "JSON"))
    assert back(client, "json", rows.encode(b'{"id": 1}', "plain")) == {"id": 1}
    with pytest.raises(EncodeError, match="does not fit its JSON Schema"):
        rows.encode(b'{"id": "x"}', "plain")


def test_the_newest_schema_of_a_subject_is_the_default(client: RegistryClient) -> None:
    client.register("kept-value", Schema('"int"'))
    number = client.register("kept-value", Schema('"long"'))
    data = JsonRows("avro", client).encode(b"1", "kept")
    assert data == b"\0" + number.to_bytes(4, "big") + b"\x02"
    assert JsonRows("avro", client, subject="kept-value").encode(b"1", "another") == data
    with pytest.raises(ConfigError, match="no subject 'kept-key'"):
        JsonRows("avro", client, is_key=True).encode(b"1", "kept")
    with pytest.raises(ConfigError, match="has a schema of type AVRO"):
        JsonRows("json", client).encode(b"1", "kept")
    with pytest.raises(ConfigError, match="the format is 'arvo'"):
        JsonRows("arvo", client)
    with pytest.raises(ConfigError, match="the schema is of type AVRO, the format is 'json'"):
        JsonRows("json", client, schema=Schema('"int"'))
    with pytest.raises(EncodeError, match="the value is no JSON"):
        JsonRows("avro", client).encode(b"{", "kept")
