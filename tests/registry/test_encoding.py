"""Tests of columns that are encoded with a schema and decoded again."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Iterator

import pyarrow as pa
import pytest

from penstock.errors import ConfigError, EncodeError
from penstock.registry import Registry, RegistryClient, from_schema, to_schema

MOMENT = dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC)
TYPE = pa.struct(
    [
        ("a", pa.int64()),
        ("b", pa.string()),
        ("c", pa.list_(pa.field("element", pa.float64()))),
        ("d", pa.map_(pa.string(), pa.int32())),
        ("e", pa.struct([("x", pa.bool_())])),
    ]
)
ROWS = [
    {"a": 1, "b": "x", "c": [1.5, None], "d": [("k", 1)], "e": {"x": True}},
    None,
    {"a": None, "b": None, "c": None, "d": None, "e": None},
]


@pytest.fixture(scope="module")
def client() -> Iterator[RegistryClient]:
    with Registry() as registry, registry.client() as client:
        yield client


@pytest.mark.parametrize("format", ["avro"])
def test_columns_come_back(client: RegistryClient, format: str) -> None:
    column = pa.chunked_array([pa.array(ROWS, TYPE)])
    data = to_schema(column, format, client, topic=f"my-{format}")
    assert data.null_count == 1
    assert f"my-{format}-value" in client.subjects()
    assert from_schema(data, format, client).whole().to_pylist() == ROWS


def test_json_leaves_out_nothing(client: RegistryClient) -> None:
    data = to_schema(pa.array(ROWS, TYPE), "json", client, topic="json")
    assert data[0].as_py()[5:] == b'{"a": 1, "b": "x", "c": [1.5, null], "d": {"k": 1}, "e": {"x": true}}'


def test_logical_types(client: RegistryClient) -> None:
    kind = pa.struct(
        [
            ("day", pa.date32()),
            ("at", pa.timestamp("us", "UTC")),
            ("local", pa.timestamp("ms")),
            ("sum", pa.decimal128(9, 2)),
            ("raw", pa.binary(3)),
        ]
    )
    row = {
        "day": dt.date(2026, 1, 31),
        "at": MOMENT,
        "local": MOMENT.replace(tzinfo=None),
        "sum": decimal.Decimal("12.34"),
        "raw": b"abc",
    }
    data = to_schema(pa.array([row], kind), "avro", client, topic="logical", is_key=True)
    found = from_schema(data, "avro", client).whole()
    assert found.to_pylist() == [row]
    assert found.type == kind
    assert "logical-key" in client.subjects()


def test_what_cannot_be_written_says_why(client: RegistryClient) -> None:
    with pytest.raises(ConfigError, match="Avro has no type for uint64"):
        to_schema(pa.array([1], pa.uint64()), "avro", client, topic="t")
    with pytest.raises(ConfigError, match="JSON has no type for binary"):
        to_schema(pa.array([b""]), "json", client, topic="t")
    with pytest.raises(ConfigError, match="'avro', 'json' or 'protobuf'"):
        to_schema(pa.array([1]), "thrift", client, topic="t")
    with pytest.raises(EncodeError, match="does not fit"):
        to_schema(pa.array(["x"]), "avro", client, topic="t", schema='"int"')


MESSAGE = pa.struct(
    [
        ("a", pa.int64()),
        ("b", pa.string()),
        ("c", pa.list_(pa.float64())),
        ("d", pa.map_(pa.string(), pa.struct([("n", pa.int32())]))),
        ("e", pa.struct([("x", pa.bool_()), ("y", pa.list_(pa.struct([("z", pa.binary())])))])),
        ("at", pa.timestamp("us", "UTC")),
        ("u", pa.uint64()),
        ("f", pa.float32()),
    ]
)
MESSAGES = [
    {
        "a": -1,
        "b": "x",
        "c": [1.5, 2.5],
        "d": [("k", {"n": 7})],
        "e": {"x": True, "y": [{"z": b"\xff"}]},
        "at": MOMENT,
        "u": (1 << 64) - 1,
        "f": 0.5,
    },
    None,
    {"a": None, "b": None, "c": [], "d": [], "e": None, "at": None, "u": None, "f": None},
]


def test_columns_become_messages_and_come_back(client: RegistryClient) -> None:
    data = to_schema(pa.array(MESSAGES, MESSAGE), "protobuf", client, topic="my.messages")
    assert from_schema(data, "protobuf", client).whole().to_pylist() == MESSAGES
    assert client.version("my.messages-value").schema.type == "PROTOBUF"


def test_messages_of_a_schema_are_those_of_protobuf(client: RegistryClient) -> None:
    text = 'syntax = "proto3"; message A { int32 n = 1; } message B { A a = 1; repeated string s = 2; }'
    column = pa.array([{"a": {"n": 300}, "s": ["x", "y"]}])
    data = to_schema(column, "protobuf", client, topic="b", schema=text, message="B")[0].as_py()
    # The message is the file's second: one index, 1.
    assert data[5:] == b"\x02\x02" + b"\x0a\x03\x08\xac\x02" + b"\x12\x01x\x12\x01y"
    first = to_schema(pa.array([{"n": 1}]), "protobuf", client, topic="b", schema=text)[0].as_py()
    assert first[5:] == b"\x00" + b"\x08\x01"


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (pa.int32(), "make a struct of the column"),
        (pa.struct([("a b", pa.int32())]), "no name of Protobuf's"),
        (pa.struct([("a", pa.decimal128(9, 2))]), "no type for decimal128"),
        (pa.struct([("a", pa.timestamp("us"))]), "no type for timestamp"),
        (pa.struct([("a", pa.list_(pa.list_(pa.int32())))]), "no type for list"),
        (pa.struct([("a", pa.map_(pa.float64(), pa.int32()))]), "no maps from double"),
    ],
)
def test_types_without_a_counterpart_in_protobuf_are_refused(
    client: RegistryClient, kind: pa.DataType, why: str
) -> None:
    with pytest.raises(ConfigError, match=why):
        to_schema(pa.array([], kind), "protobuf", client, topic="t")


def test_a_row_that_fits_no_message_is_an_error(client: RegistryClient) -> None:
    text = 'syntax = "proto3"; message A { int32 n = 1; }'
    for row in ({"n": "x"}, {"n": 1 << 40}, {"m": 1}):
        with pytest.raises(EncodeError, match="does not fit A"):
            to_schema(pa.array([row]), "protobuf", client, topic="c", schema=text)
    with pytest.raises(EncodeError, match="does not fit"):
        to_schema(pa.array([{"c": [None, 1.5]}]), "protobuf", client, topic="lists")
