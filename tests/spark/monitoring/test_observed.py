"""Tests that Spark's own progress reports contain what a query has read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.errors import ConfigError
from penstock.spark import observed, progress_of


@pytest.mark.spark
def test_rows_bytes_partitions_and_times_are_in_the_progress(
    spark: Any, brokers: str, new_topic: Callable[..., str], tmp_path: Path
) -> None:
    stamps = pa.array([1_000, 2_000, 3_000], pa.timestamp("ms"))
    table = pa.table({"key": pa.array([b"k", None, b""], pa.binary()), "timestamp": stamps})
    table = table.append_column("value", pa.array([b"12", b"345", None], pa.binary()))
    topic = new_topic(table.append_column("partition", pa.array([0, 1, 1], pa.int32())), partitions=3)
    options = {"kafka.bootstrap.servers": brokers, "subscribe": topic, "startingOffsets": "earliest"}
    frame = spark.readStream.format("penstock").options(**options).load()

    def finished(rows: Any, name: str) -> Any:
        writer = rows.writeStream.format("noop")
        query = writer.option("checkpointLocation", str(tmp_path / name)).trigger(availableNow=True).start()
        query.awaitTermination()
        return next(each for each in query.recentProgress if each["numInputRows"])

    progress = finished(observed(frame), "all")
    found = progress["observedMetrics"]["penstock"]
    assert (found["rows"], found["bytes"], found["partitions"]) == (3, 6, 2)
    assert [found[each][:19].replace("T", " ") for each in ("oldest", "newest")] == [
        "1970-01-01 00:00:01",
        "1970-01-01 00:00:03",
    ]
    assert progress_of(progress).rows == 3
    assert finished(observed(frame.select("value"), "mine"), "some")["observedMetrics"]["mine"].asDict() == {
        "rows": 3,
        "bytes": 5,
    }


@pytest.mark.spark
def test_a_name_that_is_empty_is_refused(spark: Any) -> None:
    with pytest.raises(ConfigError, match="not empty"):
        observed(spark.range(1), "")
