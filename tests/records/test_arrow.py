"""Tests of converting record columns to and from Arrow: Spark's types, shared memory and valid arrays."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pytest

from penstock.errors import EncodeError
from penstock.model import COLUMN_NAMES
from penstock.records import arrow
from penstock.records.arrow import HEADERS_TYPE, SCHEMA, from_arrow, schema_for, to_arrow
from penstock.records.batch import encode_batch
from penstock.records.columns import RecordColumns
from penstock.records.decode import decode_columns
from penstock.records.row_format import RowLike

UTC = datetime.UTC
ROWS: list[RowLike] = [
    (b"k", b"v1", [("h", b"x"), ("h", None)], 1_700_000_000_123),
    (None, None, (), -1),
    (b"", b"", [("é", b"")], 0),
]
DATA = encode_batch(ROWS, base_offset=5)


def test_schema() -> None:
    assert tuple(SCHEMA.names) == COLUMN_NAMES
    assert str(SCHEMA.field("headers").type) == "list<element: struct<key: string, value: binary>>"
    assert SCHEMA.field("timestamp").type == pa.timestamp("us", tz="UTC")
    assert schema_for(["offset", "key"]).names == ["offset", "key"]
    with pytest.raises(ValueError, match="nonsense"):
        schema_for(["nonsense"])


def test_every_column() -> None:
    batch = to_arrow(decode_columns([DATA]), "täglich", 3)
    batch.validate(full=True)
    assert batch.schema.equals(SCHEMA)
    assert batch.to_pydict() == {
        "key": [b"k", None, b""],
        "value": [b"v1", None, b""],
        "topic": ["täglich"] * 3,
        "partition": [3] * 3,
        "offset": [5, 6, 7],
        "timestamp": [
            datetime.datetime(2023, 11, 14, 22, 13, 20, 123000, UTC),
            datetime.datetime(1969, 12, 31, 23, 59, 59, 999000, UTC),
            datetime.datetime(1970, 1, 1, tzinfo=UTC),
        ],
        "timestampType": [0] * 3,
        "headers": [
            [{"key": "h", "value": b"x"}, {"key": "h", "value": None}],
            [],
            [{"key": "é", "value": b""}],
        ],
    }


def test_names_choose_and_order() -> None:
    columns = decode_columns([DATA], columns=["value", "offset"])
    assert to_arrow(columns, "t", 0, ["offset", "topic", "value"]).schema.names == [
        "offset",
        "topic",
        "value",
    ]
    with pytest.raises(ValueError, match="'key' was not decoded"):
        to_arrow(columns, "t", 0, ["key"])


def test_no_rows() -> None:
    batch = to_arrow(decode_columns([b""]), "t", 0)
    batch.validate(full=True)
    assert batch.num_rows == 0
    assert batch.schema.equals(SCHEMA)


def test_memory_is_shared() -> None:
    columns = decode_columns([DATA])
    batch = to_arrow(columns, "t", 0)
    assert columns.value is not None
    assert batch.column("value").buffers()[2].address == columns.value.data.ctypes.data
    back = from_arrow(batch)
    assert back.value is not None
    assert back.value.data.ctypes.data == columns.value.data.ctypes.data


def test_partitions_by_row() -> None:
    columns = decode_columns([DATA])
    columns.partitions = np.array([4, 5, 6], dtype=np.int32)
    assert to_arrow(columns, "t", 0, ["partition"]).column("partition").to_pylist() == [4, 5, 6]


@pytest.mark.parametrize("rows", [arrow._CONSTANT_ROWS_MAX, arrow._CONSTANT_ROWS_MAX + 1])
@pytest.mark.parametrize("topic", ["", "t", "größe"])
def test_long_constant_columns(rows: int, topic: str) -> None:
    batch = to_arrow(RecordColumns(rows), topic, 2, ["topic", "partition"])
    batch.validate(full=True)
    assert batch.column("topic").unique().to_pylist() == [topic]
    assert batch.column("partition").unique().to_pylist() == [2]


def test_timestamps_beyond_microseconds() -> None:
    limits = np.array([(1 << 63) - 1, -(1 << 63), 0])
    batch = to_arrow(RecordColumns(3, timestamps=limits), "t", 0, ["timestamp"])
    cut = batch.column("timestamp").cast(pa.int64()).to_pylist()
    assert cut[0] > 9_000_000_000_000_000_000
    assert cut[1:] == [-cut[0], 0]


@pytest.mark.parametrize(
    "kind",
    [pa.binary(), pa.large_binary(), pa.string(), pa.large_string(), pa.binary_view(), pa.string_view()],
)
def test_keys_and_values_of_any_width(kind: pa.DataType) -> None:
    values = (
        ["a", None, "größe" * 50, ""] if kind in (pa.string(), pa.large_string(), pa.string_view()) else None
    )
    array = pa.array(values or [b"a", None, b"b" * 50, b""], kind)
    columns = from_arrow(pa.RecordBatch.from_arrays([array, array.slice(0)], names=["key", "value"]))
    expected = [item.encode() if isinstance(item, str) else item for item in array.to_pylist()]
    assert columns.key is not None
    assert columns.value is not None
    assert columns.key.to_list() == columns.value.to_list() == expected


def test_dictionaries_and_nulls() -> None:
    array = pa.array(["a", "b", None, "a"]).dictionary_encode()
    columns = from_arrow(pa.RecordBatch.from_arrays([array, pa.nulls(4)], names=["key", "value"]))
    assert columns.key is not None
    assert columns.value is not None
    assert columns.key.to_list() == [b"a", b"b", None, b"a"]
    assert columns.value.to_list() == [None] * 4
    assert columns.headers is None
    assert columns.timestamps is not None
    assert columns.timestamps.tolist() == [-1] * 4


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array([1, None], pa.int64()), [1, 99]),
        (pa.array([1, None], pa.timestamp("s")), [1000, 99]),
        (pa.array([1, None], pa.timestamp("ms")), [1, 99]),
        (pa.array([1999, None], pa.timestamp("us", tz="UTC")), [1, 99]),
        (pa.array([1_999_999, None], pa.timestamp("ns", tz="Europe/Berlin")), [1, 99]),
        (pa.nulls(2), [99, 99]),
        (pa.array([1, 2], pa.int32()), [1, 2]),
    ],
)
def test_timestamps_of_any_unit(array: pa.Array, expected: list[int]) -> None:
    columns = from_arrow(pa.RecordBatch.from_arrays([array], names=["timestamp"]), timestamp_ms=99)
    assert columns.timestamps is not None
    assert columns.timestamps.tolist() == expected


PAIRS = [[("a", b"1"), ("a", None)], [], [("b", b"")]]
STRUCTS = [[{"key": name, "value": value} for name, value in pairs] for pairs in PAIRS]
LARGE = pa.large_list(pa.struct([("name", pa.large_string()), ("content", pa.large_binary())]))


@pytest.mark.parametrize(
    "array",
    [
        pa.array(STRUCTS, HEADERS_TYPE),
        pa.array([[{"name": name, "content": value} for name, value in pairs] for pairs in PAIRS], LARGE),
        pa.array(PAIRS, pa.map_(pa.string(), pa.binary())),
        pa.array(PAIRS, pa.map_(pa.large_string(), pa.large_binary())),
        pa.array([[{"key": "x", "value": b"cut off"}], *STRUCTS], HEADERS_TYPE).slice(1),
    ],
)
def test_headers_of_any_shape(array: pa.Array) -> None:
    columns = from_arrow(pa.RecordBatch.from_arrays([array], names=["headers"]))
    assert columns.headers is not None
    assert columns.headers.to_list() == PAIRS


def test_header_lists_that_are_null() -> None:
    array = pa.array([None, [{"key": "a", "value": b"1"}], None], HEADERS_TYPE)
    columns = from_arrow(pa.RecordBatch.from_arrays([array], names=["headers"]))
    assert columns.headers is not None
    assert columns.headers.to_list() == [[], [("a", b"1")], []]
    hidden = pa.ListArray.from_arrays(
        pa.array([0, 1, 2], pa.int32()), array.values.take(pa.array([0, 0])), mask=pa.array([True, False])
    )
    columns = from_arrow(pa.RecordBatch.from_arrays([hidden], names=["headers"]))
    assert columns.headers is not None
    assert columns.headers.to_list() == [[], [("a", b"1")]]
    nothing = from_arrow(pa.RecordBatch.from_arrays([pa.nulls(2)], names=["headers"]))
    assert nothing.headers is not None
    assert nothing.headers.to_list() == [[], []]


@pytest.mark.parametrize(
    ("name", "array", "reason"),
    [
        ("value", pa.array([1]), "records hold bytes"),
        ("key", pa.array([[1]]), "cannot be written"),
        ("headers", pa.array(["x"]), "list of structs"),
        ("headers", pa.array([[{"a": "1", "b": b"2", "c": 3}]]), "not 3 fields"),
        ("headers", pa.array([[{"key": None, "value": b"2"}]], HEADERS_TYPE), "without a name"),
        ("headers", pa.array([[None]], HEADERS_TYPE), "null"),
        ("timestamp", pa.array(["now"]), "timestamp"),
    ],
)
def test_what_no_record_can_hold(name: str, array: pa.Array, reason: str) -> None:
    with pytest.raises(EncodeError, match=reason):
        from_arrow(pa.RecordBatch.from_arrays([array], names=[name]))
