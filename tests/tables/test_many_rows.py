"""Tests of passing ten million rows between topics and other libraries in bounded memory.

`test_scans.py` has a short form of each test. Every transfer runs in a process of its own, which measures its
additional memory; the broker is another process, with its data on disk.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from peak_memory import PEAK_MB
from penstock import Admin, Broker

ROWS = 10_000_000
STREAMED_MB_MAX = 400
"""The most memory in MB of a transfer that keeps no rows; the topic holds 1.2 GB."""

HELD_MB_MAX = 2_000
"""The most memory in MB of a transfer that keeps a numeric column of all rows and converts it."""

PROGRAM = (
    PEAK_MB
    + """
import json, sys
import pyarrow as pa
from penstock import scan_topic, write_topic, scan_log, read_topic

servers, directory = sys.argv[1:3]
write_topic(pa.table({"value": ["warm"]}), "warm", servers)
read_topic("warm", servers)
%s
"""
)

BEGIN = "before = peak_mb()\n"
END = """
print(json.dumps([found, peak_mb() - before]))
"""


class HandOver(NamedTuple):
    """A test case for a transfer: a program, its expected result `found`, and its memory limit in MB."""

    text: str
    expected: object
    mb_max: int = STREAMED_MB_MAX


SUM = "SELECT count(*), sum(value::VARCHAR::BIGINT)::BIGINT FROM scan"
ALL = [ROWS, ROWS * (ROWS - 1) // 2]
HAND_OVERS = {
    "duckdb writes": HandOver(
        "import duckdb\n"
        f"numbers = duckdb.sql('SELECT range AS n FROM range({ROWS})')\n"
        "columns = \"'key-' || (n % 1000) AS key, lpad(n::VARCHAR, 100, '0') AS value\"\n"
        "rows = numbers.project(columns)\n"
        "found = write_topic(rows, 'many', servers).rows",
        ROWS,
        STREAMED_MB_MAX * 2,
    ),
    "duckdb reads": HandOver(
        "import duckdb\nscan = scan_topic('many', servers, columns=['key', 'value'])\n"
        f"found = list(duckdb.sql('{SUM}').fetchall()[0])",
        ALL,
        STREAMED_MB_MAX * 2,
    ),
    "duckdb reads a log": HandOver(
        "import duckdb\nscan = scan_log(directory, 'many', columns=['value'])\n"
        f"found = list(duckdb.sql('{SUM}').fetchall()[0])",
        ALL,
        # Mapped pages of segments count as well.
        STREAMED_MB_MAX * 4,
    ),
    "pyarrow reads": HandOver(
        "reader = pa.RecordBatchReader.from_stream(scan_topic('many', servers))\n"
        "found = sum(batch.num_rows for batch in reader)",
        ROWS,
    ),
    "a scan is written": HandOver(
        "found = write_topic(scan_topic('many', servers, columns=['key', 'value']), 'copy', servers).rows",
        ROWS,
    ),
    "polars reads": HandOver(
        "import polars\nframe = polars.DataFrame(scan_topic('many', servers, columns=['offset']))\n"
        "found = frame.height",
        ROWS,
        HELD_MB_MAX,
    ),
    "pandas reads": HandOver(
        "import pandas\nscan = scan_topic('many', servers, columns=['offset'])\n"
        "frame = pandas.DataFrame.from_arrow(scan)\n"
        "found = len(frame)",
        ROWS,
        HELD_MB_MAX,
    ),
    "polars writes": HandOver(
        "import polars\n"
        f"frame = polars.select(value=polars.int_range({ROWS}).cast(polars.String))\n"
        "before = peak_mb()\n"
        "found = write_topic(frame, 'from-polars', servers).rows",
        ROWS,
    ),
    "pandas writes": HandOver(
        "import pandas\n"
        f"frame = pandas.DataFrame({{'value': pandas.RangeIndex({ROWS}).astype('str')}})\n"
        "before = peak_mb()\n"
        "found = write_topic(frame, 'from-pandas', servers).rows",
        ROWS,
    ),
}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("many") / "log"


@pytest.fixture(scope="module")
def many(directory: Path) -> Iterator[str]:
    with Broker(data_dir=directory, num_partitions=4) as broker:
        with Admin(broker.bootstrap_servers) as admin:
            for topic in ("warm", "many", "copy", "from-polars", "from-pandas"):
                admin.create_topic(topic, partitions=4)
        yield broker.bootstrap_servers


@pytest.mark.soak
@pytest.mark.parametrize("name", HAND_OVERS)
def test_ten_million_rows(many: str, directory: Path, name: str) -> None:
    hand_over = HAND_OVERS[name]
    program = PROGRAM % (BEGIN + hand_over.text + END)
    done = subprocess.run(
        [sys.executable, "-c", program, many, str(directory)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found, used_mb = json.loads(done.stdout.splitlines()[-1])
    print(f"{name}: {used_mb:.0f} MB beyond the start")
    assert found == hand_over.expected
    assert used_mb < hand_over.mb_max
