"""Tests of the exactly-once sink in Spark itself.

Tests with kills are in tests/compat/test_spark_kills.py.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from penstock import Admin, read_topic
from penstock.errors import PenstockError
from penstock.spark import follow

pytestmark = pytest.mark.spark


def numbers_of(topic: str, brokers: str) -> list[int]:
    """Return the sorted numbers that a read_committed consumer finds in a topic."""
    table = read_topic(topic, brokers, isolation="read_committed", columns=["value"])
    return sorted(int(value) for value in table["value"].to_pylist())


def until_there(topic: str, brokers: str, numbers: list[int]) -> None:
    deadline = time.monotonic() + 30
    while numbers_of(topic, brokers) != numbers:
        assert time.monotonic() < deadline, numbers_of(topic, brokers)
        time.sleep(0.05)


def ongoing(brokers: str) -> set[str]:
    """Return the transactional ids with an open transaction.

    Other tests leave some at the shared broker.
    """
    with Admin(brokers) as admin:
        return {each.transactional_id for each in admin.list_transactions(states=["Ongoing"])}


def counted(rows: int) -> pa.Table:
    texts = pa.array([b"%d" % n for n in range(rows)], pa.binary())
    return pa.table(
        {"key": texts, "value": texts, "partition": pa.array([n % 2 for n in range(rows)], pa.int32())}
    )


def run_query(spark: Any, brokers: str, source: str, sink: str, checkpoint: Path, **options: object) -> None:
    """Copy the records of topic `source` to topic `sink` in batches of 20 rows and two tasks."""
    frame = (
        spark.readStream.format("penstock")
        .option("kafka.bootstrap.servers", brokers)
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", 20)
        .option("minPartitions", 2)
        .schema("key binary, value binary")
        .load()
    )
    writer = (
        frame.writeStream.format("penstock").option("kafka.bootstrap.servers", brokers).option("topic", sink)
    )
    for name, value in {"exactlyOnce": "true", **options}.items():
        writer = writer.option(name, value)
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    follow(query, lambda progress: None)


def test_batches_again_after_a_lost_checkpoint_entry_are_written_once(
    spark: Any, brokers: str, new_topic: Callable[..., str], tmp_path: Path
) -> None:
    source, sink = new_topic(counted(50)), new_topic(partitions=3)
    checkpoint, open_before = tmp_path / "checkpoint", ongoing(brokers)
    run_query(spark, brokers, source, sink, checkpoint)
    until_there(sink, brokers, [*range(50)])
    # As after a crash between the sink's commit and Spark's: the last batch runs again.
    last = max((checkpoint / "commits").glob("[0-9]*"), key=lambda file: int(file.name))
    for file in (last, last.with_name(f".{last.name}.crc")):
        file.unlink(missing_ok=True)
    run_query(spark, brokers, source, sink, checkpoint)
    until_there(sink, brokers, [*range(50)])
    with Admin(brokers) as admin:
        ids = {each.transactional_id for each in admin.list_transactions()}
    assert ongoing(brokers) <= open_before
    query = {name[: name.index("-task-")] for name in ids if "-task-" in name}
    assert query, "the ids of tasks begin with the query's"


def test_an_older_checkpoint_stops_the_query(
    spark: Any, brokers: str, new_topic: Callable[..., str], tmp_path: Path
) -> None:
    source, sink = new_topic(counted(40)), new_topic()
    checkpoint = tmp_path / "checkpoint"
    run_query(spark, brokers, source, sink, checkpoint)
    for name in ("commits", "offsets"):
        for file in (checkpoint / name).iterdir():
            file.unlink()
    with pytest.raises(
        PenstockError, match=r"batch 0 is to be written, but the sink holds batch 1 of this query"
    ):
        run_query(spark, brokers, source, sink, checkpoint)
    until_there(sink, brokers, [*range(40)])
    # A new checkpoint is a new query.
    shutil.rmtree(checkpoint)
    run_query(spark, brokers, source, sink, checkpoint)
    until_there(sink, brokers, sorted([*range(40)] * 2))


def test_a_job_counts_as_a_whole_or_not_at_all(
    spark: Any, brokers: str, new_topic: Callable[..., str]
) -> None:
    sink, open_before = new_topic(partitions=3), ongoing(brokers)

    def write(frame: Any) -> None:
        writer = frame.write.format("penstock").option("kafka.bootstrap.servers", brokers)
        writer.option("kafka.transaction.timeout.ms", "3000")
        writer.option("topic", sink).option("exactlyOnce", "true").mode("append").save()

    rows = spark.range(100, numPartitions=4)
    write(rows.selectExpr("cast(id as string) value"))
    # The gate ends when the job does; its markers take a moment.
    until_there(sink, brokers, [*range(100)])
    assert read_topic(sink, brokers).num_rows == 100 + 3, "one record of the gate in each partition"
    failing = "if(id = 99, cast(raise_error('no') as string), cast(id + 1000 as string)) value"
    with pytest.raises(PySparkException, match="USER_RAISED_EXCEPTION"):
        write(rows.selectExpr(failing))
    until_there(sink, brokers, [*range(100)])
    # A task that was at its end while the job failed keeps its transaction until the timeout.
    deadline = time.monotonic() + 60
    while held_up := ongoing(brokers) - open_before:
        assert time.monotonic() < deadline, f"readers are held up by {held_up}"
        time.sleep(0.05)
