"""Differences between releases of Spark from 4.0 on, and replacements for features that older releases lack.

| since | what | before that |
|---|---|---|
| 4.2 | limits of micro-batches (`SupportsTriggerAvailableNow`, `ReadLimit`) | `UnlimitedStreamReader` |
| 4.2 | `to_arrow_schema` takes the time zone | UTC |
| 4.1 | Arrow batches for stream writers | `RowStreamWriter` |
| 4.1 | `arrow_udf` | refused with an error |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import datasource

from penstock.errors import MissingDependencyError
from penstock.spark.requirements import pyspark_version

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import DataSourceStreamArrowWriter
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )
    from pyspark.sql.types import StructType

    HAS_READ_LIMITS: bool
    HAS_STREAM_ARROW_WRITERS: bool
else:
    try:
        from pyspark.sql.streaming.datasource import (
            ReadAllAvailable,
            ReadLimit,
            ReadMaxRows,
            SupportsTriggerAvailableNow,
        )

        HAS_READ_LIMITS = True
    except ImportError:

        class ReadLimit:
            """Replaces PySpark's class `ReadLimit` in releases without it."""

        @dataclass
        class ReadAllAvailable(ReadLimit):
            """Replaces PySpark's class `ReadAllAvailable` in releases without it."""

        @dataclass
        class ReadMaxRows(ReadLimit):
            """Replaces PySpark's class `ReadMaxRows` in releases without it."""

            max_rows: int

        SupportsTriggerAvailableNow = object

        HAS_READ_LIMITS = False

    HAS_STREAM_ARROW_WRITERS = hasattr(datasource, "DataSourceStreamArrowWriter")
    DataSourceStreamArrowWriter = getattr(
        datasource, "DataSourceStreamArrowWriter", datasource.DataSourceStreamWriter
    )

__all__ = [
    "HAS_READ_LIMITS",
    "HAS_STREAM_ARROW_WRITERS",
    "DataSourceStreamArrowWriter",
    "ReadAllAvailable",
    "ReadLimit",
    "ReadMaxRows",
    "SupportsTriggerAvailableNow",
    "arrow_schema_of",
    "arrow_udf",
]


def arrow_schema_of(schema: StructType) -> pa.Schema:
    """Return the Arrow schema that Spark expects for batches of the Spark schema `schema`. Times are UTC."""
    from pyspark.sql.pandas.types import to_arrow_schema

    if HAS_READ_LIMITS:
        return to_arrow_schema(schema, timezone="UTC")
    convert: Any = to_arrow_schema
    return convert(schema)


def arrow_udf(function: Any, result: Any, *, instead: str) -> Any:
    """Convert a function of Arrow arrays to a function of Spark columns.

    Raises:
        MissingDependencyError: Spark is 4.0, which has no such functions; `instead` says what to use.
    """
    try:
        from pyspark.sql.pandas.functions import arrow_udf as make
    except ImportError:
        raise MissingDependencyError(
            f"PySpark {pyspark_version()} has no functions of Arrow arrays, which came with 4.1: {instead}"
        ) from None
    made: Any = make  # its stub has no structs
    return made(function, result)
