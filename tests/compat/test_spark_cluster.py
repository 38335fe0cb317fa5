"""Spark's standalone cluster of a master and two workers, against a broker with TLS and SASL."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark
import pytest

from penstock.spark import find_java
from penstock.spark.runtime.worker_python import worker_python

pytestmark = pytest.mark.compat

HERE = Path(__file__).parent
SOURCES = HERE.parents[1] / "src"
SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
START_S = 120.0
PROGRAM_S = 800.0
"""Half a minute is enough where the machine has nothing else to do."""


@dataclass
class Cluster:
    master: str
    workers: list[subprocess.Popen[bytes]]
    environment: dict[str, str]


@contextmanager
def running_cluster(directory: Path) -> Iterator[Cluster]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    java, python = find_java(), worker_python(SPARK_CLASS.parents[1])
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")},
        **({"JAVA_HOME": str(java.home)} if java.home else {}),
        "PYTHONPATH": str(SOURCES),
        # All of this cluster is on one machine.
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": python,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
    }
    environment.pop("SPARK_HOME", None)
    address = ["--host", "127.0.0.1", "--webui-port", "0"]
    processes: list[subprocess.Popen[bytes]] = []

    def start(name: str, *arguments: str) -> None:
        with (directory / f"{name}-{len(processes)}.log").open("wb") as log:
            command = [SPARK_CLASS, f"org.apache.spark.deploy.{name}", *address, *arguments]
            processes.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log))

    try:
        start("master.Master", "--port", str(port))
        wait_for_port(port, processes[0])
        for number in range(2):
            work = str(directory / f"work-{number}")
            start("worker.Worker", "-c", "1", "-m", "600m", "-d", work, f"spark://127.0.0.1:{port}")
        yield Cluster(f"spark://127.0.0.1:{port}", processes[1:], environment)
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def wait_for_port(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError("the master of the cluster does not listen")


def accounts_of(cluster: Cluster, directory: Path, seconds: float) -> dict[str, object]:
    """Run the program, kill a worker when it asks for that, and return what it says."""
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
            if (directory / "kill").exists() and cluster.workers[0].poll() is None:
                cluster.workers[0].kill()
            time.sleep(0.2)
    finally:
        log.close()
        program.kill()
        told, _ = program.communicate()
    lines = [line for line in told.splitlines() if line.startswith("ACCOUNTS ")]
    assert lines, (directory / "driver.log").read_text(errors="replace")[-5000:]
    found: dict[str, object] = json.loads(lines[0].removeprefix("ACCOUNTS "))
    return found


@pytest.mark.timeout(900)
def test_queries_on_two_workers_read_and_write_a_secured_cluster(tmp_path: Path) -> None:
    with running_cluster(tmp_path) as cluster:
        accounts = accounts_of(cluster, tmp_path, 0)
    assert accounts["error"] is None, accounts
    assert (accounts["batch"], accounts["written"], accounts["stream"]) == (500, 500, True), accounts
