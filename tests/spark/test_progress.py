from __future__ import annotations

from datetime import UTC, datetime

from penstock.errors import ConfigError
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
