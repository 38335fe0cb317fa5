"""Land a topic as Parquet with one call, which sets the options of both the source and the sink."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from os import PathLike, fspath
from typing import TYPE_CHECKING, overload

from penstock.errors import ConfigError
from penstock.spark.sinks.progress import OBSERVED

if TYPE_CHECKING:
    from pyspark.sql import DataFrameReader, DataFrameWriter
    from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter


DICTIONARIES = {"catalog_properties": "landing.catalog.", "store": "landing.store."}
"""A dict from the name of an argument that is a dictionary to the prefix of the options made from its items.
"""


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
    """Return a query that lands the records of `reader` in a table at `path`; start it by `start` or `save`.

        orders = spark.readStream.option("kafka.bootstrap.servers", brokers).option("subscribe", "orders")
        landed = land(orders, "/lake/orders", partition_by="date")
        query = landed.option("checkpointLocation", "/lake/orders-state").start()

    `path` is a directory, or the URL of a lake table as ``penstock land`` takes it: an object store
    (``s3://bucket/orders/``), ``iceberg://catalog/db.table``, ``delta://PATH``. `reader` has the options of
    the source. `partition_by` names columns; ``date`` and ``hour`` are made from the time of a record.
    `options` are the landing options without the prefix ``landing``: ``columns``, ``compression``,
    ``fileBytes``; for directories ``format``, ``maxPartitions``, ``time``, ``table``, ``catalog``, and a
    dictionary ``catalog_properties``; for the lake ``name``, ``storeFile``, and a dictionary ``store``.

    Micro-batches report in ``progress["observedMetrics"]["landed"]`` their `rows`, `files` and `bytes`.

    Raises:
        ConfigError: an argument has another type. Options are checked when the query starts.
    """
    from pyspark.sql import functions as f

    names = partition_by if isinstance(partition_by, str) else ",".join(partition_by)
    given: dict[str, str] = {"landing": fspath(path) if "://" in fspath(path) else os.path.abspath(path)}
    if names:
        given["landing.partitionBy"] = names
    for name, value in options.items():
        if name in DICTIONARIES:
            if not isinstance(value, Mapping):
                raise ConfigError(f"{name} is a dictionary, not {value!r}")
            given |= {f"{DICTIONARIES[name]}{key}": str(each) for key, each in value.items()}
        else:
            given[f"landing.{name}"] = str(value)
    frame = reader.format("penstock").options(**given).load()
    frame = frame.observe(
        OBSERVED,
        f.coalesce(f.sum("rows"), f.lit(0)).alias("rows"),
        f.count("file").alias("files"),
        f.coalesce(f.sum("bytes"), f.lit(0)).alias("bytes"),
    )
    writer = frame.writeStream if frame.isStreaming else frame.write.mode("append")
    return writer.format("penstock").options(**given)
