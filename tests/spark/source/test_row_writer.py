from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import (
    BinaryType,
    IntegerType,
    MapType,
    Row,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from penstock.spark.source.row_writer import BATCH_ROWS, RowStreamWriter, batches_of
from penstock.spark.source.schema import HEADERS_TYPE

SCHEMA = StructType(
    [
        StructField("key", StringType()),
        StructField("value", BinaryType()),
        StructField("timestamp", TimestampType()),
        StructField("headers", HEADERS_TYPE),
        StructField("others", MapType(StringType(), TimestampType())),
    ]
)
NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
LOCAL = NOON.astimezone().replace(tzinfo=None)
"""The time NOON as a row has it: in the local time zone, without the zone."""


def test_rows_become_batches_with_the_types_of_spark() -> None:
    header = Row("key", "value")
    rows = [
        ("k", bytearray(b"v"), LOCAL, [header("h", bytearray(b"1")), header("n", None)], {"at": LOCAL}),
        (None, None, None, None, None),
    ]
    (batch,) = batches_of(iter(rows), SCHEMA)
    first, second = batch.to_pylist()
    assert first == {
        "key": "k",
        "value": b"v",
        "timestamp": NOON,
        "headers": [{"key": "h", "value": b"1"}, {"key": "n", "value": None}],
        "others": [("at", NOON)],
    }
    assert set(second.values()) == {None}


def test_batches_are_bounded() -> None:
    schema = StructType([StructField("n", IntegerType())])
    batches = batches_of(((n,) for n in range(BATCH_ROWS + 1)), schema)
    assert [batch.num_rows for batch in batches] == [BATCH_ROWS, 1]


class Counted(WriterCommitMessage):
    def __init__(self, rows: int) -> None:
        self.rows = rows


class Inner(DataSourceStreamArrowWriter):
    """A stand-in for a writer that counts rows, and records the arguments of its commits."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Counted:
        return Counted(sum(batch.num_rows for batch in iterator))

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        self.told.append(("commit", *messages, batchId))

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        self.told.append(("abort", *messages, batchId))


def test_the_writer_of_batches_hears_of_rows_commits_and_aborts() -> None:
    inner = Inner()
    writer = RowStreamWriter(inner, StructType([StructField("n", IntegerType())]))
    message = writer.write(iter([(1,), (2,)]))
    assert isinstance(message, Counted)
    assert message.rows == 2
    writer.commit([message], 3)
    writer.abort([None], 4)
    assert inner.told == [("commit", message, 3), ("abort", None, 4)]
