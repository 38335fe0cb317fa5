"""Penstock's source and Spark's JVM Kafka connector read the same rows, and continue each other's queries."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from compat.peers import shared_kafka, spark_connector
from penstock.spark.source.options import READ_NAMES, WRITE_NAMES

pytestmark = pytest.mark.compat

HERE = Path(__file__).parent
SOURCES = HERE.parents[1] / "src"

OUTCOMES = {
    "batch: offsets": 5 + 33 + 1,
    "batch: an end before the start": "refused",
    "batch: an end that is not there yet, loss borne": 34 + 33 + 3,
    "batch: a time too late, from the latest": 1,
    "batch: times": 5 + 5,
    "batch: records that are gone": "data loss",
    "batch: records that are gone, loss borne": 12,
    "batch: committed transactions": 9,
    "batch: pieces": 100,
    "batch: headers": 4,
    "batch: an unknown topic": "unknown topic",
    "stream: rates": 3,
    "stream: records that are gone": "data loss",
}
"""The connector's result for each test case: the number of rows or micro-batches, or how it fails."""


def accounts_of(directory: Path, servers: str, seed: int, steps: int) -> dict[str, Any]:
    return told("spark_connector_query.py", directory, servers, seed, steps, seconds=3000 if steps else 800)


def told(program: str, directory: Path, *arguments: object, seconds: float) -> dict[str, Any]:
    """Run a Spark program of this directory; return the JSON results that it prints."""
    jars = ",".join(map(str, spark_connector()))
    dropped = ("PENSTOCK_", "PYSPARK_", "SPARK_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    done = subprocess.run(
        [sys.executable, str(HERE / program), str(directory), jars, *map(str, arguments)],
        env={**environment, "PYTHONPATH": str(SOURCES)},
        capture_output=True,
        text=True,
        timeout=seconds,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("ACCOUNTS ")]
    assert lines, done.stderr[-5000:]
    found: dict[str, Any] = json.loads(lines[0].removeprefix("ACCOUNTS "))
    return found


def check(accounts: dict[str, Any]) -> None:
    assert accounts["differential"]["differences"] == {}
    outcomes = accounts["differential"]["outcomes"]
    assert {name: outcomes[name] for name in OUTCOMES} == OUTCOMES
    assert 5 <= outcomes["batch: gaps of compaction"] < 150
    assert accounts["moves"] == {"exact": True, "rows": [90, 90]}
    assert accounts["state"] == {"exact": True}
    assert set(accounts["firsts"].values()) == {True}
    assert "guessed" not in accounts["firsts"]
    # An option or setting that a release of the connector or of Java's clients adds is to be decided about.
    assert accounts["settings"] == []
    assert set(accounts["options"]) <= {
        name.lower() for name in (*READ_NAMES, *WRITE_NAMES, "includeHeaders")
    }


@pytest.mark.timeout(900)
def test_both_read_the_same_and_go_on_where_the_other_stopped(tmp_path: Path) -> None:
    check(accounts_of(tmp_path, "-", 1, 0))


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_both_go_on_where_the_other_stopped_on_apache_kafka(tmp_path: Path) -> None:
    seed = random.randrange(1_000_000)
    accounts = accounts_of(tmp_path, shared_kafka("4.3"), seed, 60)
    check(accounts)
    assert accounts["logs"] == {"exact": True, "name": "in"}
    both = ["data loss", True]
    assert accounts["losses"] == {"kafka-penstock": both, "penstock-kafka": both}
    assert accounts["wander"]["exact"], f"seed {seed}"


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("rows", [1_000_000, 10_000_000])
def test_millions_of_rows_are_the_same(rows: int, tmp_path: Path) -> None:
    accounts = told("spark_many_rows_query.py", tmp_path, rows, seconds=3000)
    assert accounts["penstock"] == accounts["kafka"]
    assert sum(count for _, count, *_ in accounts["penstock"]) == rows
