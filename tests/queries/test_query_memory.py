"""Tests of queries on a topic that is larger than their memory limit.

DuckDB writes intermediate data to files.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from peak_memory import PEAK_MB
from penstock import Admin, Broker, Producer

pytestmark = pytest.mark.slow

ROWS, ROW_BYTES = 1_000_000, 800
LIMIT_MB = 300
MB_MAX = 650
"""The most memory in MB that a process may use beyond its initial memory; the topic has 800 MB.

It covers DuckDB's memory limit, a few fetches and decoded columns.
"""

PROGRAM = (
    PEAK_MB
    + """
import json, sys
from penstock import sql

servers, query = sys.argv[1:3]
sql("select count(*) from small where value like '%x%'", servers)
before = peak_mb()
rows, last = 0, None
with sql(query, servers, stream=True, memory_limit="LIMITMB", value_format="text") as answer:
    for batch in answer:
        rows += batch.num_rows
        last = batch.column(0)[-1].as_py()
print(json.dumps([rows, str(last)[:12], peak_mb() - before]))
""".replace("LIMIT", str(LIMIT_MB))
)


def value(number: int) -> bytes:
    """Return a value such that the order of values differs from that of offsets."""
    return b"%012d" % (number * 7_919 % ROWS) + b"x" * (ROW_BYTES - 12)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with Broker(data_dir=tmp_path_factory.mktemp("large")) as broker:
        with Admin(broker.bootstrap_servers) as admin, Producer(broker.bootstrap_servers) as producer:
            admin.create_topic("large", 4)
            admin.create_topic("small", 1)
            producer.send("small", b"x")
            for first in range(0, ROWS, 20_000):
                numbers = np.arange(first, first + 20_000)
                producer.send_arrow("large", pa.table({"value": [value(int(n)) for n in numbers]}))
        yield broker.bootstrap_servers


@pytest.mark.parametrize(
    ("query", "rows", "last"),
    [
        ("select count(*) from large where value like '%0007%'", 1, None),
        ("select value from large", ROWS, None),
        ("select value from large order by value", ROWS, f"{ROWS - 1:012}"),
        ("select count(*) from (select value, count(*) from large group by value)", 1, str(ROWS)),
        ('select value from large order by "offset" desc, partition limit 3', 3, None),
    ],
)
def test_memory_is_bounded(servers: str, tmp_path: Path, query: str, rows: int, last: str | None) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, servers, query],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    found, newest, used_mb = json.loads(done.stdout.splitlines()[-1])
    print(f"{query}: {used_mb:.0f} MB beyond the start")
    assert found == rows
    assert last is None or newest == last
    assert used_mb < MB_MAX
