"""The data source on releases of Spark before the newest, installed from the package index."""

from __future__ import annotations

import json
import os
import subprocess
import sysconfig
from pathlib import Path

import pytest

from compat.peers import python_program

pytestmark = [pytest.mark.compat, pytest.mark.soak]

HERE = Path(__file__).parent
SOURCES = HERE.parents[1] / "src"


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("release", ["4.0", "4.1", "4.2"])
def test_a_release_reads_writes_and_streams(release: str, tmp_path: Path) -> None:
    python = python_program(f"spark-{release}")
    # Everything but PySpark is what these tests run with.
    asked = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    place = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    Path(place, "shared.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    dropped = ("PENSTOCK_", "PYSPARK_", "SPARK_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    done = subprocess.run(
        [str(python), str(HERE / "spark_release_query.py"), str(tmp_path)],
        env={**environment, "PYTHONPATH": str(SOURCES)},
        capture_output=True,
        text=True,
        timeout=1500,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("ACCOUNTS ")]
    assert lines, done.stderr[-5000:]
    accounts = json.loads(lines[0].removeprefix("ACCOUNTS "))
    assert accounts.pop("version").startswith(release)
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
        "binary events": 0,
        "landed": True,
    }
