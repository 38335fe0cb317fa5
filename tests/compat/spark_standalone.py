"""A local standalone Spark cluster: a master, and workers that tests can kill and start."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyspark

from compat.peers import free_ports, until
from penstock.spark import find_java
from penstock.spark.runtime.worker_python import worker_python

SPARK_HOME = Path(pyspark.__file__).parent
SOURCES = Path(__file__).resolve().parents[2] / "src"
START_S = 600.0
STOP_S = 20.0


def spark_environment(python: str | None = None, sources: Path | None = SOURCES) -> dict[str, str]:
    """Return the environment variables for a Spark program: Java, and the Python of drivers and workers.

    `python` defaults to a Python that fits this one. `sources` is the directory from which `penstock` is
    imported; with None the installed package is used.
    """
    java, python = find_java(), python or worker_python(SPARK_HOME)
    dropped = ("PENSTOCK_", "PYSPARK_", "PYTHONPATH", "SPARK_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    return {
        **kept,
        **({"JAVA_HOME": str(java.home)} if java.home else {}),
        **({"PYTHONPATH": str(sources)} if sources else {}),
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": python,
        # All of it is on one machine.
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


class Cluster:
    """A Spark cluster that `running_cluster` starts and stops; tests kill and start its workers."""

    def __init__(self, directory: Path, environment: Mapping[str, str], worker_memory: str) -> None:
        (port,) = free_ports(1)
        self.master = f"spark://127.0.0.1:{port}"
        self.environment = {**environment, "SPARK_DAEMON_MEMORY": "256m"}
        self.workers: dict[int, subprocess.Popen[bytes]] = {}
        self._directory = directory
        self._worker_memory = worker_memory
        self._starts = 0
        self._processes = [self._start("master.Master", "--port", str(port))]
        ready = f"Starting Spark master at {self.master}"
        until(lambda: ready in self._log_of("master.Master"), "the master of Spark", START_S)

    def start_worker(self, number: int) -> None:
        """Start the worker with this number, with one core; it registers at the master some seconds later."""
        work = str(self._directory / f"work-{number}")
        arguments = ["-c", "1", "-m", self._worker_memory, "-d", work, self.master]
        self.workers[number] = self._start("worker.Worker", *arguments)
        self._processes.append(self.workers[number])

    def kill_worker(self, number: int) -> None:
        """End a worker with SIGKILL; its executors end when they notice that it is gone."""
        process = self.workers.pop(number)
        process.kill()
        process.wait()

    def wait_for_workers(self, count: int) -> None:
        """Wait until the master's log shows that `count` workers have registered."""
        what = f"{count} workers of Spark"
        until(lambda: self._log_of("master.Master").count("Registering worker") >= count, what, START_S)

    def stop(self) -> None:
        """End the master and all workers; kill those that do not end within STOP_S seconds."""
        for process in reversed(self._processes):
            process.terminate()
        deadline = time.monotonic() + STOP_S
        for process in self._processes:
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _log_of(self, name: str) -> str:
        return "".join(path.read_text(errors="replace") for path in self._directory.glob(f"{name}-*.log"))

    def _start(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        self._starts += 1
        command = [str(SPARK_HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}"]
        command += ["--host", "127.0.0.1", "--webui-port", "0", *arguments]
        with (self._directory / f"{name}-{self._starts}.log").open("wb") as log:
            return subprocess.Popen(command, env=self.environment, stdout=log, stderr=log)


@contextmanager
def running_cluster(
    directory: Path, environment: Mapping[str, str] | None = None, *, workers: int = 2, memory: str = "600m"
) -> Iterator[Cluster]:
    """Run a master and `workers` workers, each with one core and `memory`, with logs in `directory`."""
    cluster = Cluster(directory, environment or spark_environment(), memory)
    try:
        for number in range(workers):
            cluster.start_worker(number)
        cluster.wait_for_workers(workers)
        yield cluster
    finally:
        cluster.stop()
