"""Counts of the records that a query reads, in Spark's own progress and events, by `Dataset.observe`.

A source in Python reports no metrics of its own: `ReportsSourceMetrics` is for sources of the JVM. Metrics
that a query computes with `observe` are in its progress, under ``observedMetrics``, and in the events of
listeners.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NAME = "penstock"


def observed(frame: DataFrame, name: str = NAME) -> DataFrame:
    """Return `frame` with metrics of its micro-batches in ``progress["observedMetrics"][name]``.

    The metrics are `rows`; of the columns that `frame` has: `bytes` of keys and values, the number of
    `partitions`, and the times of the `oldest` and the `newest` record. The difference between these times
    and the ``timestamp`` of the progress is the delay of the query. A name may be used once in a query. Costs
    one pass over the columns.

    Raises:
        ConfigError: `name` is empty.
    """
    from pyspark.sql import functions as f

    if not name:
        raise ConfigError("what is observed needs a name that is not empty")
    columns = set(frame.columns)
    metrics = [f.count(f.lit(1)).alias("rows")]
    sizes = [
        f.coalesce(f.octet_length(f.col(each)), f.lit(0)) for each in ("key", "value") if each in columns
    ]
    if sizes:
        total = sizes[0] if len(sizes) == 1 else sizes[0] + sizes[1]
        metrics.append(f.coalesce(f.sum(total), f.lit(0)).alias("bytes"))
    if {"topic", "partition"} <= columns:
        place = f.struct("topic", "partition")
        metrics.append(f.size(f.collect_set(place)).alias("partitions"))
    if "timestamp" in columns:
        metrics += [f.min("timestamp").alias("oldest"), f.max("timestamp").alias("newest")]
    return frame.observe(name, *metrics)
