"""Tests of the line on stderr that says what a batch query has written: rows per topic, or landed rows."""

from __future__ import annotations

import pytest

from penstock.landing.manifest import LandedFile, Manifest
from penstock.model import OffsetRange
from penstock.spark.runtime import telling
from penstock.spark.runtime.telling import landed_line, once_line, rows_line, tell


def test_rows_of_all_tasks_by_topic() -> None:
    assert rows_line([{"b": 2, "a": 1}, {"b": 1000}, {}]) == "wrote 1 row to a, 1,002 rows to b"
    assert rows_line([{}]) == rows_line([]) == "wrote no rows"
    many = rows_line([{f"t{number}": 1 for number in range(7)}])
    assert many.endswith("1 row to t4, and 2 more topics")


def test_rows_that_are_written_once() -> None:
    assert once_line(2, {"b", "a"}) == "wrote 2 rows to a, b, once"
    assert once_line(0, ()) == "wrote no rows"


def test_rows_files_and_offsets_that_landed() -> None:
    files = tuple(LandedFile(f"f{number}", "s", 10, 500, {}) for number in range(2))
    ranges = (OffsetRange("orders", 0, 0, 15), OffsetRange("orders", 1, 5, 11))
    manifest = Manifest("w", 0, files, ranges)
    assert landed_line("/lake/orders", manifest) == (
        "landed 20 rows in 2 files (1,000 bytes) in /lake/orders, from 21 offsets of orders"
    )
    assert landed_line("/lake/orders", None) == "landed no rows in /lake/orders"


def test_where_lines_go(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(telling.SWITCH, raising=False)
    tell("wrote 1 row to \x1b")
    assert capsys.readouterr() == ("", "penstock: wrote 1 row to \\x1b\n")
    monkeypatch.setenv(telling.SWITCH, "0")
    tell("nothing")
    assert capsys.readouterr() == ("", "")
