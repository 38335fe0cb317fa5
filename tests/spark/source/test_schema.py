from __future__ import annotations

import pickle
import random

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from penstock.errors import ConfigError
from penstock.spark.source.options import CloudEventsOptions
from penstock.spark.source.schema import (
    BATCH_BYTES,
    BATCH_ROWS_MAX,
    HEADERS_TYPE,
    Projection,
    cut,
    schema_for,
)

HEADER = pa.struct([("key", pa.string()), ("value", pa.binary())])


def fetched(rows: int, value_bytes: int = 10) -> pa.RecordBatch:
    """Return a record batch as the client fetches it, with all columns."""
    return pa.record_batch(
        {
            "key": pa.array([b"k%d" % i if i % 3 else None for i in range(rows)], pa.binary()),
            "value": pa.array([bytes([65 + i % 26]) * value_bytes for i in range(rows)], pa.binary()),
            "topic": pa.array(["t"] * rows, pa.string()),
            "partition": pa.array([0] * rows, pa.int32()),
            "offset": pa.array(range(rows), pa.int64()),
            "timestamp": pa.array(range(rows), pa.timestamp("us", tz="UTC")),
            "timestampType": pa.array([0] * rows, pa.int32()),
            "headers": pa.array(
                [[{"key": "h", "value": None}]] * rows, pa.list_(pa.field("element", HEADER))
            ),
        }
    )


def projected(schema: StructType, batch: pa.RecordBatch) -> pa.Table:
    return pa.Table.from_batches(list(Projection(schema, None).batches(batch)))


def columns(**types: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in types.items()])


def test_default_columns() -> None:
    plain = ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"]
    assert schema_for(False, None).fieldNames() == plain
    assert schema_for(True, None).fieldNames() == [*plain, "headers"]
    assert schema_for(False, CloudEventsOptions()).fieldNames()[-2:] == ["data", "error"]


@pytest.mark.parametrize("include_headers", [False, True])
def test_batches_equal_what_spark_checks_them_against(include_headers: bool) -> None:
    from pyspark.sql.pandas.types import to_arrow_schema

    schema = schema_for(include_headers, None)
    table = projected(schema, fetched(3))
    assert table.schema.equals(to_arrow_schema(schema, timezone="UTC"))
    assert table["key"].to_pylist() == [None, b"k1", b"k2"]


def test_any_subset_in_any_order_and_text_for_bytes() -> None:
    projection = Projection(columns(offset=LongType(), VALUE=StringType(), key=StringType()), None)
    assert projection.fetched == ("key", "value", "offset")
    (batch,) = pickle.loads(pickle.dumps(projection)).batches(fetched(4).slice(1))
    assert batch.schema.names == ["offset", "VALUE", "key"]
    assert batch.to_pylist()[0] == {"offset": 1, "VALUE": "B" * 10, "key": "k1"}


def test_rows_without_headers_have_null_as_with_the_connector_of_the_jvm() -> None:
    kind = pa.list_(pa.field("element", pa.struct([("key", pa.string()), ("value", pa.binary())])))
    some = [{"key": "a", "value": None}]
    projection = Projection(columns(headers=HEADERS_TYPE), None)
    for rows in ([some, [], None, some], [[], []], [some, some], [[], some]):
        for first in (0, 1):
            batch = pa.record_batch({"headers": pa.array(rows, kind)}).slice(first)
            (found,) = projection.batches(batch)
            found.validate(full=True)
            assert found.column(0).to_pylist() == [row or None for row in rows[first:]]


def test_bytes_that_are_no_text_pass_unchecked() -> None:
    batch = pa.record_batch({"value": pa.array([b"\xff\xfe"], pa.binary())})
    (text,) = Projection(columns(value=StringType()), None).batches(batch)
    assert text.column(0).view(pa.binary()).to_pylist() == [b"\xff\xfe"]


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (columns(valeu=StringType()), "unknown column 'valeu'; there are: key, value"),
        (columns(id=StringType()), "comes with the option cloudevents = 'columns'"),
        (columns(offset=IntegerType()), "'offset' cannot be read as int; it is bigint"),
        (columns(value=IntegerType()), "it is binary or string"),
        (columns(headers=MapType(StringType(), BinaryType())), "it is array<struct"),
    ],
)
def test_other_columns_are_refused(schema: StructType, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Projection(schema, None)


def test_an_empty_schema_is_refused() -> None:
    with pytest.raises(ConfigError, match="names no column"):
        Projection(StructType([]), None)


def test_cutting_keeps_rows_and_bounds_size() -> None:
    chance = random.Random(3)
    for _ in range(20):
        rows, size = chance.choice([0, 1, 999, 25_000]), chance.choice([0, 10, 1000])
        batch = fetched(rows, size)
        pieces = list(cut(batch))
        assert pa.Table.from_batches(pieces, batch.schema).equals(pa.Table.from_batches([batch]))
        assert all(0 < piece.num_rows <= 1.5 * BATCH_ROWS_MAX for piece in pieces)
        assert all(piece.nbytes <= 1.6 * BATCH_BYTES for piece in pieces)


def test_one_enormous_record_is_one_batch() -> None:
    assert len(list(cut(fetched(1, 3 * BATCH_BYTES)))) == 1
