"""A Python data source that does no work: it shows what Spark itself costs with any Python source.

It returns the same Arrow batch to Spark repeatedly, with the columns and sizes of the benchmarks. The cost
of a real source above this figure is its own; no Python source can cost less.
"""

# ruff: noqa: N802 - the names of methods are Spark's

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark import cloudpickle
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_BYTES = 1 << 20
PARTITIONS = 4
COLUMNS = "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp"
HEADERS = "headers array<struct<key:string,value:binary>>"
HEADER_BYTES = 30
"""The approximate number of bytes that Arrow needs for each header."""

AVRO_ROW = {
    "id": 1_000_000,
    "user": "user-500",
    "amount": 1.5,
    "ok": True,
    "quantity": 3,
    "city": "Bern",
    "at": 1 << 50,
    "code": "abc",
}
"""The row that this source returns if the columns of `avro_spark.py` are requested."""


def register(spark: Any) -> None:
    """Register this data source with a Spark session, as the format `empty`."""
    import empty_source

    cloudpickle.register_pickle_by_value(empty_source)  # workers do not have this folder on their path
    spark.dataSource.register(EmptySource)


class EmptySource(DataSource):
    """A data source with these options: `rows` in total, and per row `valueBytes` and number of `headers`.

    A stream returns all rows in its first micro-batch.
    """

    @classmethod
    def name(cls) -> str:
        return "empty"

    def schema(self) -> str:
        columns = f"{COLUMNS}, timestampType int"
        return f"{columns}, {HEADERS}" if "headers" in self.options else columns

    def reader(self, schema: StructType) -> DataSourceReader:
        return EmptyReader(self.options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return EmptyStreamReader(self.options, schema)


class EmptyReader(DataSourceReader):
    """A batch reader that returns the same rows in each of PARTITIONS partitions."""

    def __init__(self, options: dict[str, str], schema: StructType) -> None:
        self._rows = int(options["rows"]) // PARTITIONS
        self._value_bytes = int(options["valueBytes"])
        self._headers = int(options.get("headers", 0))
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(number) for number in range(PARTITIONS)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        from pyspark.sql.pandas.types import to_arrow_schema

        target = to_arrow_schema(self._schema, timezone="UTC")
        step = max(1, min(10_000, BATCH_BYTES // self._row_bytes(), self._rows))
        values: dict[str, Any] = {
            "key": b"key-000000000000",
            "value": b"v" * self._value_bytes,
            "topic": "topic",
            "partition": 0,
            "offset": 1 << 40,
            "timestamp": 1 << 50,
            "timestampType": 0,
            "headers": [{"key": f"header-{n}", "value": b"v" * 10} for n in range(self._headers)],
            **AVRO_ROW,
        }
        batch = pa.RecordBatch.from_arrays(
            [pa.array([values[field.name]] * step, type=field.type) for field in target], schema=target
        )
        for begin in range(0, self._rows, step):
            yield batch.slice(0, min(step, self._rows - begin))

    def _row_bytes(self) -> int:
        return self._value_bytes + 60 + self._headers * HEADER_BYTES


class EmptyStreamReader(DataSourceStreamReader):
    """A stream reader that returns all rows in the first micro-batch, and none afterwards."""

    def __init__(self, options: dict[str, str], schema: StructType) -> None:
        self._reader = EmptyReader(options, schema)

    def initialOffset(self) -> dict[str, int]:
        return {"offset": 0}

    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, int]:
        return {"offset": 1}

    def partitions(self, start: Any, end: Any) -> list[InputPartition]:
        return self._reader.partitions() if start != end else []

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._reader.read(partition)
