from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import StorageError
from penstock.spark.monitoring import reports as module
from penstock.spark.monitoring.reports import SUFFIX, find_report, reports_directory, write_report

PROGRESS = {
    "batchId": 7,
    "numInputRows": 30,
    "processedRowsPerSecond": 15.0,
    "batchDuration": 2000,
    "sources": [{"endOffset": {"orders": {"0": 30}}, "latestOffset": {"orders": {"0": 50}}}],
}


def document(query_id: str = "id-1", **values: Any) -> dict[str, Any]:
    return {"id": query_id, "name": None, "isActive": True, "error": None, **values}


def test_a_report_is_found_by_id_and_by_name(tmp_path: Path) -> None:
    write_report(tmp_path, document("id-1", name="orders", progress=PROGRESS))
    write_report(tmp_path, document("id-2", name="bills"))
    by_name = find_report(tmp_path, "orders")
    assert by_name is not None
    assert by_name == find_report(tmp_path, "id-1")
    assert by_name.progress is not None
    assert (by_name.progress.batch_id, by_name.progress.lag) == (7, 20)
    assert by_name.offsets == ({"orders": {"0": 30}},)
    assert find_report(tmp_path, "others") is None
    assert find_report(tmp_path / "missing", "orders") is None


def test_of_one_name_the_newest_is_found(tmp_path: Path) -> None:
    for number in range(3):
        write_report(tmp_path, document(f"id-{number}", name="orders"))
        moment = 1_000.0 if number == 1 else 500.0
        os.utime(tmp_path / f"id-{number}{SUFFIX}", (moment, moment))
    found = find_report(tmp_path, "orders")
    assert found is not None
    assert (found.query_id, found.written_at) == ("id-1", 1_000.0)


def test_the_error_of_a_query_is_one_line(tmp_path: Path) -> None:
    pages = (
        "[STREAM_FAILED] Query ended\nTraceback:\npenstock.errors.ConfigError: unknown topic 'x'\n\tat a.B"
    )
    write_report(tmp_path, document(isActive=False, error=pages))
    found = find_report(tmp_path, "id-1")
    assert found is not None
    assert (found.is_active, found.error) == (False, "unknown topic 'x'")


def test_the_oldest_reports_are_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REPORTS_MAX", 3)
    for number in range(5):
        write_report(tmp_path, document(f"id-{number}"))
        os.utime(tmp_path / f"id-{number}{SUFFIX}", (1_000 + number, 1_000 + number))
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"id-{n}{SUFFIX}" for n in (2, 3, 4)]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"id": 1, "isActive": true, "progress": []}', "\x00"])
def test_a_file_that_is_no_report_is_named(text: str, tmp_path: Path) -> None:
    (tmp_path / f"id-1{SUFFIX}").write_text(text)
    with pytest.raises(StorageError, match="is no report of a query"):
        find_report(tmp_path, "id-1")


def test_a_report_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REPORT_BYTES_MAX", 10)
    (tmp_path / f"id-1{SUFFIX}").write_text(json.dumps(document()))
    with pytest.raises(StorageError, match="larger than 10 bytes"):
        find_report(tmp_path, "id-1")


def test_reports_are_kept_with_the_state_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert reports_directory() == Path("/state/penstock/queries")
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", "/home/ann")
    assert reports_directory() == Path("/home/ann/.local/state/penstock/queries")
