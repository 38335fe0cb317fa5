"""Columns written by a schema and read again."""

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
    with pytest.raises(ConfigError, match="'avro' or 'json'"):
        to_schema(pa.array([1]), "protobuf", client, topic="t")
    with pytest.raises(EncodeError, match="does not fit"):
        to_schema(pa.array(["x"]), "avro", client, topic="t", schema='"int"')
