"""Converts the Arrow types and arrays of decoded values to the types and arrays that Spark expects."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as spark

from penstock.errors import ConfigError
from penstock.records.kernels.compiled import Ints

_PLAIN: tuple[tuple[Any, spark.DataType], ...] = (
    (pa.types.is_boolean, spark.BooleanType()),
    (pa.types.is_int8, spark.ByteType()),
    (lambda kind: pa.types.is_int16(kind) or pa.types.is_uint8(kind), spark.ShortType()),
    (lambda kind: pa.types.is_int32(kind) or pa.types.is_uint16(kind), spark.IntegerType()),
    (lambda kind: pa.types.is_int64(kind) or pa.types.is_uint32(kind), spark.LongType()),
    (pa.types.is_uint64, spark.DecimalType(20, 0)),
    (lambda kind: pa.types.is_float16(kind) or pa.types.is_float32(kind), spark.FloatType()),
    (pa.types.is_float64, spark.DoubleType()),
    (lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind), spark.StringType()),
    (lambda kind: pa.types.is_binary(kind) or pa.types.is_large_binary(kind), spark.BinaryType()),
    (pa.types.is_fixed_size_binary, spark.BinaryType()),
    (pa.types.is_date32, spark.DateType()),
    (pa.types.is_time32, spark.IntegerType()),
    (pa.types.is_time64, spark.LongType()),
    (pa.types.is_null, spark.StringType()),
)


def spark_type(kind: pa.DataType) -> spark.DataType:
    """Return the Spark type for the Arrow type of a column.

    Unsigned numbers get the next wider type. Times of day become numbers in their unit, as with Spark's
    `from_avro`.

    Raises:
        ConfigError: Spark has no such type.
    """
    for is_one, found in _PLAIN:
        if is_one(kind):
            return found
    if pa.types.is_struct(kind):
        return spark.StructType([spark.StructField(each.name, spark_type(each.type)) for each in kind])
    if pa.types.is_map(kind):
        return spark.MapType(spark_type(kind.key_type), spark_type(kind.item_type))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return spark.ArrayType(spark_type(kind.value_type))
    if pa.types.is_timestamp(kind):
        return spark.TimestampNTZType() if kind.tz is None else spark.TimestampType()
    if pa.types.is_decimal128(kind):
        return spark.DecimalType(kind.precision, kind.scale)
    raise ConfigError(f"Spark has no type for {kind}")


def as_spark(column: pa.Array, wanted: pa.DataType) -> tuple[pa.Array, Ints]:
    """Return (a column in the type that Spark expects, the indices of the rows that this type cannot hold).

    Such rows, with times beyond 64-bit microseconds, are null in the column. Nanoseconds are cut off.
    """
    if column.type == wanted:
        return column, np.zeros(0, dtype=np.int64)
    found = _cast(column, wanted)
    if found is not None:
        return found, np.zeros(0, dtype=np.int64)
    bad: list[int] = []
    return pa.concat_arrays(_halved(column, wanted, 0, bad)), np.array(bad, dtype=np.int64)


def _cast(column: pa.Array, wanted: pa.DataType) -> pa.Array | None:
    try:
        return pc.cast(column, options=pc.CastOptions(target_type=wanted, allow_time_truncate=True))
    except pa.ArrowInvalid:
        return None


def _halved(column: pa.Array, wanted: pa.DataType, first: int, bad: list[int]) -> list[pa.Array]:
    """Convert a column; halve a part that fails and retry, until only unconvertible rows become null."""
    found = _cast(column, wanted)
    if found is not None:
        return [found]
    if len(column) == 1:
        bad.append(first)
        return [pa.nulls(1, wanted)]
    middle = len(column) // 2
    return [
        *_halved(column.slice(0, middle), wanted, first, bad),
        *_halved(column.slice(middle), wanted, first + middle, bad),
    ]
