"""The data source works on Spark releases before the newest, which are installed from PyPI."""

from __future__ import annotations

import json
import os
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from compat.peers import python_program, spark_connector

pytestmark = [pytest.mark.compat, pytest.mark.soak]

HERE = Path(__file__).parent
SOURCES = HERE.parents[1] / "src"


def accounts_of(release: str, program: str, *arguments: object) -> dict[str, Any]:
    """Run a program with a Spark release; return the JSON results that it prints."""
    python = python_program(f"spark-{release}")
    # Everything but PySpark is what these tests run with.
    asked = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    place = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    Path(place, "shared.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    dropped = ("PENSTOCK_", "PYSPARK_", "SPARK_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    done = subprocess.run(
        [str(python), str(HERE / program), *map(str, arguments)],
        env={**environment, "PYTHONPATH": str(SOURCES)},
        capture_output=True,
        text=True,
        timeout=1500,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("ACCOUNTS ")]
    assert lines, done.stderr[-5000:]
    accounts: dict[str, Any] = json.loads(lines[0].removeprefix("ACCOUNTS "))
    assert accounts.pop("version").startswith(release)
    return accounts


def pinned(release: str) -> str:
    """Return the PySpark version that the tests use for a Spark release."""
    text = (HERE / f"spark-{release}" / "requirements.txt").read_text(encoding="utf-8")
    return next(line for line in text.split() if line.startswith("pyspark==")).removeprefix("pyspark==")


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("release", ["4.0", "4.1", "4.2"])
def test_queries_are_handed_over_both_ways(release: str, tmp_path: Path) -> None:
    """Queries with state are killed and continue with the other source, the release's Kafka connector.

    Penstock's source takes over queries of the connector as well.
    """
    jars = ",".join(map(str, spark_connector(pinned(release))))
    parts = ("moves", "state", "firsts")
    accounts = accounts_of(release, "spark_connector_query.py", tmp_path, jars, "-", 1, 1, *parts)
    firsts = accounts.pop("firsts")
    assert accounts == {"moves": {"exact": True, "rows": [90, 90]}, "state": {"exact": True}}
    # The connector's own failure: it fails where it has planned the micro-batch itself, too.
    assert firsts.pop("failed once", []) == (["penstock", "kafka"] if release == "4.1" else [])
    assert firsts == dict.fromkeys(
        ["penstock-kafka", "kafka-penstock", "penstock-penstock", "kafka-kafka"], True
    )


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("release", ["4.0", "4.1", "4.2"])
def test_a_release_reads_writes_and_streams(release: str, tmp_path: Path) -> None:
    accounts = accounts_of(release, "spark_release_query.py", tmp_path)
    events = accounts.pop("events")
    assert events == 100 if release != "4.0" else "say modes='binary'" in events
    assert accounts == {
        "other": 1,
        "batch": 100,
        "copy": True,
        "available now": 100,
        "stream": True,
        "largest batch": 30,
        "committed": 190,
        "runs from the latest": [True, True, True],
        "binary events": 0,
        "landed": True,
    }
