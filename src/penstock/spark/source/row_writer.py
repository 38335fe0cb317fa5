"""Convert the rows of a stream to Arrow batches for Spark 4.0, whose stream writers get rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from pyspark.sql.datasource import DataSourceStreamWriter, WriterCommitMessage
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, TimestampType

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_ROWS = 10_000
"""The most rows of an Arrow batch, as in Spark's own batches by default."""


class RowStreamWriter(DataSourceStreamWriter):
    """Converts rows to Arrow batches, and passes them to a writer of Arrow batches."""

    def __init__(self, writer: DataSourceStreamWriter, schema: StructType) -> None:
        self._writer = writer
        self._schema = schema

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        return self._writer.write(cast(Any, batches_of(iterator, self._schema)))

    def commit(self, messages: Sequence[WriterCommitMessage | None], batch_id: int) -> None:
        self._writer.commit(cast(Any, messages), batch_id)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batch_id: int) -> None:
        self._writer.abort(cast(Any, messages), batch_id)


def batches_of(rows: Iterator[Any], schema: StructType) -> Iterator[pa.RecordBatch]:
    """Yield `rows`, tuples with the columns of `schema`, as batches of at most BATCH_ROWS."""
    import pyarrow as pa

    from penstock.spark.runtime.releases import arrow_schema_of

    target = arrow_schema_of(schema)
    converters = [_converter(field.dataType) for field in schema.fields]
    while chunk := list(islice(rows, BATCH_ROWS)):
        columns = zip(*chunk, strict=True)
        arrays = [
            pa.array([convert(value) for value in column] if convert else column, type=field.type)
            for column, convert, field in zip(columns, converters, target, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=target)


def _converter(kind: DataType) -> Callable[[Any], Any] | None:
    """Return a function that converts a value of Spark for Arrow, or None if Arrow takes it unchanged."""
    if isinstance(kind, TimestampType):
        # A row has local time without a zone, Arrow would take it for UTC.
        return lambda value: None if value is None else kind.toInternal(value)
    if isinstance(kind, ArrayType):
        inner = _converter(kind.elementType)
        if inner is None:
            return None
        return lambda value: None if value is None else [inner(each) for each in value]
    if isinstance(kind, MapType):
        one, other = _converter(kind.keyType) or _same, _converter(kind.valueType) or _same
        return lambda value: None if value is None else [(one(k), other(v)) for k, v in value.items()]
    if isinstance(kind, StructType):
        names = kind.names
        parts = [_converter(field.dataType) or _same for field in kind.fields]
        return lambda value: (
            None
            if value is None
            else {name: convert(part) for name, convert, part in zip(names, parts, value, strict=True)}
        )
    return None


def _same(value: Any) -> Any:
    return value
