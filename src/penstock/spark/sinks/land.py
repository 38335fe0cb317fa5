"""Landing a topic as Parquet with one call: both ends of the query get the options they need."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from os import PathLike, fspath
from typing import TYPE_CHECKING, overload

from penstock.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import DataFrameReader, DataFrameWriter
    from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter


@overload
def land(
    reader: DataFrameReader,
    path: str | PathLike[str],
    *,
    partition_by: str | Iterable[str] = (),
    **options: object,
) -> DataFrameWriter: ...


@overload
def land(
    reader: DataStreamReader,
    path: str | PathLike[str],
    *,
    partition_by: str | Iterable[str] = (),
    **options: object,
) -> DataStreamWriter: ...


def land(
    reader: DataFrameReader | DataStreamReader,
    path: str | PathLike[str],
    *,
    partition_by: str | Iterable[str] = (),
    **options: object,
) -> DataFrameWriter | DataStreamWriter:
    """A query that lands what `reader` is to read in the directory `path`; start it with `start` or `save`.

        orders = spark.readStream.option("kafka.bootstrap.servers", brokers).option("subscribe", "orders")
        landed = land(orders, "/lake/orders", partition_by="date")
        query = landed.option("checkpointLocation", "/lake/orders-state").start()

    `reader` has the options of the source. `partition_by` names columns; ``date`` and ``hour`` are made of
    the time of a record. `options` are those of landing without their prefix: ``columns``, ``format``,
    ``compression``, ``fileBytes``, ``maxPartitions``, ``time``, ``table``, ``catalog``, and a dictionary
    ``catalog_properties``.

    Raises:
        ConfigError: an argument has another type. Options are checked when the query starts.
    """
    names = partition_by if isinstance(partition_by, str) else ",".join(partition_by)
    given: dict[str, str] = {"landing": fspath(path) if "://" in fspath(path) else os.path.abspath(path)}
    if names:
        given["landing.partitionBy"] = names
    for name, value in options.items():
        if name == "catalog_properties":
            if not isinstance(value, Mapping):
                raise ConfigError(f"catalog_properties is a dictionary, not {value!r}")
            given |= {f"landing.catalog.{key}": str(each) for key, each in value.items()}
        else:
            given[f"landing.{name}"] = str(value)
    frame = reader.format("penstock").options(**given).load()
    writer = frame.writeStream if frame.isStreaming else frame.write.mode("append")
    return writer.format("penstock").options(**given)
