"""The Arrow schema of a landed table: the columns in its files, and the partition columns. Needs pyarrow."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.errors import StorageError
from penstock.landing.layout import TableLayout

PARTITION_TYPES = {"string": pa.string(), "int": pa.int32(), "bigint": pa.int64(), "date": pa.date32()}


def table_schema(file: Path, layout: TableLayout) -> pa.Schema:
    """Return the Arrow columns of a table: those in the Parquet file `file`, then the partition columns.

    Raises StorageError.
    """
    try:
        schema = pq.read_schema(file).remove_metadata()
    except OSError as error:
        raise StorageError(f"cannot read {file}: {error}") from error
    for field in partition_schema(layout):
        if field.name not in schema.names:
            schema = schema.append(field)
    return schema


def partition_schema(layout: TableLayout) -> pa.Schema:
    """Return the partition columns of a table with their Arrow types."""
    return pa.schema([(name, PARTITION_TYPES[kind]) for name, kind in layout.partition_types().items()])
