from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.errors import ConfigError, PenstockError
from penstock.spark import QueryReports, follow, query_name
from penstock.spark.monitoring.view import QueryWatch
from penstock.spark.sinks.progress import progress_of, reason

REPORT = {
    "batchId": 3,
    "numInputRows": 1000,
    "processedRowsPerSecond": 2500.0,
    "batchDuration": 400,
    "eventTime": {"watermark": "2013-01-01T05:00:00.000Z"},
    "sources": [
        {"endOffset": {"t": {"0": 10, "1": 5}}, "latestOffset": {"t": {"0": 15, "1": 5, "2": 9}}},
        {"endOffset": '{"u": {"0": 1}}', "latestOffset": '{"u": {"0": 4}}'},
    ],
}


def test_progress_reads_rows_rate_and_lag() -> None:
    progress = progress_of(REPORT)
    assert (progress.batch_id, progress.rows, progress.rows_per_second, progress.duration_ms) == (
        3,
        1000,
        2500.0,
        400,
    )
    assert progress.lag == 8
    assert progress.watermark == datetime(2013, 1, 1, 5, tzinfo=UTC)


def test_progress_of_what_is_not_known() -> None:
    report = {
        **REPORT,
        "processedRowsPerSecond": float("nan"),
        "eventTime": {},
        "sources": [{"endOffset": 5}],
    }
    progress = progress_of(report)
    assert (progress.rows_per_second, progress.watermark, progress.lag) == (0.0, None, None)
    epoch = progress_of({**REPORT, "eventTime": {"watermark": "1970-01-01T00:00:00.000Z"}})
    assert epoch.watermark is None


def test_the_reason_is_one_line() -> None:
    pages = """[STREAM_FAILED] Query [id = 1] terminated with exception: Job aborted
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "worker.py", line 1, in main
    process()
penstock.errors.ConfigError: unknown topic 'x': create it first
\tat org.apache.spark.Foo.bar(Foo.scala:1)
"""
    assert reason(RuntimeError(pages)) == "unknown topic 'x': create it first"
    assert reason(RuntimeError(pages.replace("penstock.errors.ConfigError", "ValueError"))).startswith(
        "ValueError: unk"
    )
    assert reason(RuntimeError("[PATH_NOT_FOUND] Path does not exist: x.\nmore")) == "Path does not exist: x."
    assert reason(ConfigError("plain")) == "plain"
    assert reason(RuntimeError("")) == "RuntimeError"


def test_a_source_is_described_by_its_topics() -> None:
    named = (
        "org.apache.spark.sql.execution.datasources.v2.python.PythonMicroBatchStreamWithAdmissionControl@1f"
    )
    sources = [
        {"description": named, "endOffset": {"orders": {"0": 1}, "bills": {"0": 1}}},
        {"description": "FileStreamSource[file:/x]", "endOffset": '{"logOffset": 3}'},
        {"description": named, "endOffset": {f"t{n}": {"0": 1} for n in range(7)}},
    ]
    described = progress_of({**REPORT, "sources": sources}).description
    assert described == (
        "penstock[bills, orders] + FileStreamSource[file:/x] + penstock[t0, t1, t2, t3, t4, 2 more]"
    )


@pytest.mark.spark
def test_a_running_query_is_named_and_reported(
    spark: Any, brokers: str, new_topic: Callable[..., str], tmp_path: Path
) -> None:
    """The report for `penstock follow` has the query's name and its error."""
    topic = new_topic(pa.table({"value": pa.array([b"1", b"x"], pa.binary())}), partitions=1)
    listener = QueryReports(tmp_path / "reports")
    options = {"kafka.bootstrap.servers": brokers, "subscribe": topic, "startingOffsets": "earliest"}
    frame = spark.readStream.format("penstock").options(**options, maxOffsetsPerTrigger=1).load()
    name = query_name(frame.select("value"))
    assert name == f"penstock[{topic}] on {brokers}"

    def write(frame: Any, batch_id: int) -> None:
        int(frame.first()["value"])

    spark.streams.addListener(listener)
    try:
        writer = frame.writeStream.foreachBatch(write).queryName(name)
        query = (
            writer.option("checkpointLocation", str(tmp_path / "state")).trigger(availableNow=True).start()
        )
        with pytest.raises(PenstockError, match="invalid literal"):
            follow(query, lambda _: None, every_seconds=0.05)
        watch = QueryWatch(str(tmp_path / "state"), tmp_path / "reports")
        deadline = time.monotonic() + 60
        while watch.look().is_active:  # events come later than the end
            assert time.monotonic() < deadline
            time.sleep(0.05)
    finally:
        spark.streams.removeListener(listener)
    view = watch.look()
    assert (view.name, view.batch_id, view.planned_id, view.lag) == (name, 0, 1, 1)
    assert view.error is not None
    assert view.error.startswith("ValueError: invalid literal")


@pytest.mark.spark
def test_a_frame_that_reads_no_topic_has_no_name_here(spark: Any) -> None:
    with pytest.raises(ConfigError, match="reads no topic as a stream"):
        query_name(spark.range(1))
