"""A standalone Spark cluster, of a master and two workers, against a broker with TLS and SASL."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from compat.spark_standalone import Cluster, running_cluster

pytestmark = pytest.mark.compat

HERE = Path(__file__).parent
PROGRAM_S = 800.0
"""Seconds that the program may take; on an idle machine it takes half a minute."""


def accounts_of(cluster: Cluster, directory: Path, seconds: float) -> dict[str, object]:
    """Run the Spark program, kill a worker when the program requests it, and return its results."""
    command = [sys.executable, str(HERE / "spark_cluster_query.py"), cluster.master, str(directory)]
    log = (directory / "driver.log").open("wb")
    program = subprocess.Popen(
        [*command, str(seconds)],
        env=cluster.environment,
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
    )
    try:
        deadline = time.monotonic() + PROGRAM_S + seconds
        while program.poll() is None and time.monotonic() < deadline:
            if (directory / "kill").exists() and 0 in cluster.workers:
                cluster.kill_worker(0)
            time.sleep(0.2)
    finally:
        log.close()
        program.kill()
        told, _ = program.communicate()
    lines = [line for line in told.splitlines() if line.startswith("ACCOUNTS ")]
    assert lines, (directory / "driver.log").read_text(errors="replace")[-5000:]
    found: dict[str, object] = json.loads(lines[0].removeprefix("ACCOUNTS "))
    return found


def check(accounts: dict[str, object]) -> None:
    assert accounts["error"] is None, accounts
    assert (accounts["batch"], accounts["written"], accounts["stream"]) == (500, 500, True), accounts
    assert accounts["exactly once"] is True, accounts


@pytest.mark.timeout(900)
def test_queries_on_two_workers_read_and_write_a_secured_cluster(tmp_path: Path) -> None:
    with running_cluster(tmp_path) as cluster:
        check(accounts_of(cluster, tmp_path, 0))


@pytest.mark.soak
@pytest.mark.timeout(2000)
def test_a_secured_stream_outlives_a_worker(tmp_path: Path) -> None:
    """The stream runs for PENSTOCK_SOAK_SECONDS (60) while partitions are added and connections cut."""
    with running_cluster(tmp_path) as cluster:
        check(accounts_of(cluster, tmp_path, float(os.environ.get("PENSTOCK_SOAK_SECONDS", "60"))))
        assert 0 not in cluster.workers
