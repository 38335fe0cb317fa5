"""Tests of failing stores and killed writers: each record is landed once, and unused files are removed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest

from lake.places import Place, land, place
from lake.s3_server import Store
from penstock import write_topic
from penstock.errors import PenstockError
from penstock.lake.shapes import ShapeSettings

JSON = ShapeSettings("json")
RUNS_MAX = 60


def fill(servers: str, first: int, count: int) -> None:
    values = [json.dumps({"n": i}).encode() for i in range(first, first + count)]
    write_topic(pa.table({"value": values}), "orders", bootstrap_servers=servers)


def check(there: Place, count: int) -> None:
    """Raise AssertionError unless each record is landed once and maintenance removes all unlisted files."""
    assert sorted(there.rows().column("n").to_pylist()) == list(range(count))
    for _ in range(2):
        there.table().tidy(small_bytes=1, keep_snapshots_s=0, orphan_s=0)
    assert len(there.files()) == there.table().state().files
    assert sorted(there.rows().column("n").to_pylist()) == list(range(count))


@pytest.mark.parametrize("kind", ["object", "delta-s3", pytest.param("iceberg-s3", marks=pytest.mark.soak)])
def test_requests_that_fail_before_and_after_their_effect(
    kind: str, store: Store, servers: str, tmp_path: Path
) -> None:
    drawn = random.Random(f"{kind} 31")

    def fault(method: str, path: str) -> str | None:
        # Reads are repeated by every library; what writes is what could go wrong.
        is_drawn = method in ("PUT", "POST") and drawn.random() < 0.25
        return drawn.choice(("before", "after", "lost")) if is_drawn else None

    there = place(kind, store, tmp_path)
    for part in range(3):
        fill(servers, 10 * part, 10)
        for _ in range(RUNS_MAX):
            store.fault = fault
            try:
                land(there, servers, JSON)
                break
            except PenstockError:
                continue
            finally:
                store.fault = lambda method, path: None
    check(there, 30)


def kill_at_random(there: Place, servers: str, seed: str, kills: int) -> None:
    """Run the command `kills` times, each time with more records, and kill it at a random moment."""
    drawn = random.Random(seed)
    options = [word for name, value in there.options.items() for word in ("--store", f"{name}={value}")]
    words = ["land", "orders", "--to", there.where, "-b", servers, "--format", "json", "--every", "1ms", "-f"]
    count = 0
    for _ in range(kills):
        fill(servers, count, 40)
        count += 40
        with subprocess.Popen(
            [sys.executable, "-m", "penstock", *words, *options, "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "TMPDIR": str(there.directory)},
        ) as process:
            assert process.stdout is not None
            if drawn.random() < 0.7:
                # Some time after the first commit, or in the middle of one.
                process.stdout.readline()
                fill(servers, count, 40)
                count += 40
                time.sleep(drawn.random() * 0.3)
            else:
                time.sleep(drawn.random() * 3)
            process.send_signal(signal.SIGKILL)
    land(there, servers, JSON)
    check(there, count)
    spooled = [each for each in there.directory.glob("penstock-land-*") if any(each.rglob("*.parquet*"))]
    assert len(spooled) <= 1


@pytest.mark.parametrize("kind", ["object"])
def test_a_writer_that_is_killed(kind: str, store: Store, servers: str, tmp_path: Path) -> None:
    kill_at_random(place(kind, store, tmp_path), servers, f"{kind} short", 2)


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["directory", "object", "delta-s3", "iceberg-s3", "iceberg", "delta"])
def test_a_writer_that_is_killed_fifty_times(kind: str, store: Store, servers: str, tmp_path: Path) -> None:
    kill_at_random(place(kind, store, tmp_path), servers, f"{kind} long", 50)
