from __future__ import annotations

import os
from pathlib import Path

import pytest

from penstock.errors import ConfigError
from penstock.spark.monitoring.reports import SUFFIX, write_report
from penstock.spark.monitoring.view import QueryWatch
from spark.monitoring.test_checkpoint import ORDERS, write_checkpoint
from spark.monitoring.test_reports import PROGRESS, document


def test_a_checkpoint_alone_gives_position_and_rate(tmp_path: Path) -> None:
    watch = QueryWatch(str(write_checkpoint(tmp_path, 10, done=1)), tmp_path / "reports")
    first = watch.look()
    assert (first.name, first.batch_id, first.lag, first.rows_per_second) == (
        "penstock[orders]",
        0,
        None,
        None,
    )
    write_checkpoint(tmp_path, 10, 40, 100, done=2)
    second = watch.look()
    assert (second.batch_id, second.planned_id, second.rows_per_second) == (1, 2, 30.0)
    assert watch.look().rows_per_second == 30.0


def test_brokers_tell_the_lag(tmp_path: Path) -> None:
    watch = QueryWatch(str(write_checkpoint(tmp_path, 10)), tmp_path, lambda tps: dict.fromkeys(tps, 25))
    view = watch.look()
    assert (view.lag, view.ends) == (15, {ORDERS: 25})


def test_a_report_tells_name_rate_and_error(tmp_path: Path) -> None:
    reports = tmp_path / "reports"
    checkpoint = write_checkpoint(tmp_path / "checkpoint", 30, query_id="id-1")
    write_report(reports, document(name="n", progress=PROGRESS))
    for query in (str(checkpoint), "n", "id-1"):
        view = QueryWatch(query, reports).look()
        assert (view.name, view.rows_per_second, view.lag, view.offsets) == ("n", 15.0, 20, {ORDERS: 30})
        assert view.is_active
    write_report(reports, document(name="n", isActive=False, error="ValueError: bad", progress=PROGRESS))
    view = QueryWatch(str(checkpoint), reports).look()
    assert (view.is_active, view.error) == (False, "ValueError: bad")


def test_the_report_of_an_earlier_run_does_not_count(tmp_path: Path) -> None:
    """The query runs again in a session without the listener, so its old report is outdated."""
    write_report(tmp_path / "reports", document(isActive=False, error="ValueError: bad"))
    os.utime(tmp_path / "reports" / f"id-1{SUFFIX}", (500, 500))
    checkpoint = write_checkpoint(tmp_path / "checkpoint", 30, at=1_000.0)
    view = QueryWatch(str(checkpoint), tmp_path / "reports").look()
    assert (view.is_active, view.error) == (True, None)


def test_a_query_that_is_not_known_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"'orders' is no checkpoint.*checkpointLocation.*QueryReports"):
        QueryWatch("orders", tmp_path).look()
