"""A Spark query that writes to a topic exactly once, while its processes and broker are killed.

`Chaos` runs the query in a process of its own, against a broker in another, until the query ends by itself.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from free_ports import free_ports
from penstock import Admin, read_topic, write_topic

QUERY = """
import sys
from penstock.spark import session
spark = session("kills", "local[2,8]", config={"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"})
frame = (
    spark.readStream.format("penstock").option("kafka.bootstrap.servers", sys.argv[1]).option("subscribe",
    "in") .option("startingOffsets", "earliest").option("maxOffsetsPerTrigger",
    sys.argv[3]).option("minPartitions", 4) .schema("key binary, value binary").load()
)
query = (
    frame.writeStream.format("penstock").option("kafka.bootstrap.servers", sys.argv[1]).option("topic", "out")
    .option("exactlyOnce", "true").option("checkpointLocation",
    sys.argv[2]).trigger(availableNow=True).start()
)
print("started", flush=True)
query.awaitTermination()
"""
"""The program of the query.

With local[2,8] a task may fail seven times. Killing a Python worker simulates the death of an executor.
"""

BROKER_SETTINGS = ("log.flush.interval.messages=1", "transaction.state.log.num.partitions=4")


class BrokerProcess:
    """A broker process that tests kill and restart on the same port and directory."""

    def __init__(self, directory: Path) -> None:
        [self.port] = free_ports(1)
        self._directory = directory
        self.start()

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        command = [sys.executable, "-m", "penstock.broker", "--port", str(self.port)]
        command += ["--data-dir", str(self._directory)]
        for setting in BROKER_SETTINGS:
            command += ["--config", setting]
        self._popen = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self._popen.stdout is not None
        assert self._popen.stdout.readline().startswith("penstock broker")

    def kill(self) -> None:
        self._popen.kill()
        with self._popen:
            self._popen.wait(30)


class Chaos:
    """A helper that runs a Spark query to its end, and kills processes that the query uses."""

    def __init__(self, directory: Path, brokers: str, *, rows: int, rows_per_batch: int) -> None:
        self.brokers = brokers
        self.rows = rows
        self._directory = directory
        self._arguments = [brokers, str(directory / "checkpoint"), str(rows_per_batch)]
        self._errors = (directory / "errors.txt").open("wb")
        self._query: subprocess.Popen[str] | None = None
        with Admin(brokers) as admin:
            admin.create_topic("in", partitions=4)
            admin.create_topic("out", partitions=3)
        values = pa.array([b"%d" % number for number in range(rows)], pa.binary())
        write_topic(pa.table({"key": values, "value": values}), "in", brokers)

    def start(self) -> None:
        self._close_pipe()
        self._query = subprocess.Popen(
            [sys.executable, "-c", QUERY, *self._arguments],
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            start_new_session=True,
        )
        assert self._query.stdout is not None
        self._query.stdout.readline()

    @property
    def is_running(self) -> bool:
        return self._query is not None and self._query.poll() is None

    @property
    def is_unfinished(self) -> bool:
        """True if the last run of the query did not end successfully by itself."""
        return self._query is None or self._query.poll() != 0

    def kill_driver(self) -> None:
        """Kill the driver, the JVM and the workers at once, as when a machine fails."""
        if self._query is not None:
            os.killpg(self._query.pid, signal.SIGKILL)
            with self._query:
                self._query.wait(30)

    def kill_workers(self) -> None:
        """Kill all running Python workers; Spark then runs their tasks again."""
        for process in self._workers():
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue

    def _workers(self) -> Iterator[int]:
        """Yield the process ids of the Python workers, which are children of Spark's daemon."""
        assert self._query is not None
        children: dict[int, list[int]] = {}
        names: dict[int, bytes] = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal():
                try:
                    parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                    names[int(entry.name)] = (entry / "cmdline").read_bytes()
                except OSError:
                    continue
                children.setdefault(parent, []).append(int(entry.name))
        waiting = [self._query.pid]
        while waiting:
            process = waiting.pop()
            below = children.get(process, [])
            waiting += below
            if b"daemon" in names.get(process, b""):
                yield from below

    def finish(self, timeout_s: float) -> None:
        """Run the query repeatedly until it ends by itself."""
        deadline = time.monotonic() + timeout_s
        while True:
            if not self.is_running:
                if self._query is not None and self._query.returncode == 0:
                    return
                self.start()
            assert self._query is not None
            try:
                self._query.wait(max(1.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                self.kill_driver()
                raise AssertionError(
                    f"the query has not ended within {timeout_s:g} s: {self.told()}"
                ) from None

    def told(self) -> str:
        """Return the last 3,000 characters that all runs of the query have written to stderr."""
        return (self._directory / "errors.txt").read_text(errors="replace")[-3_000:]

    def wrong(self, patience_s: float) -> dict[str, Sequence[bytes]]:
        """Return the rows that read_committed consumers miss, and those they find more than once.

        The last transaction markers may be written up to `patience_s` seconds after the query has ended.
        """
        deadline = time.monotonic() + patience_s
        while True:
            table = read_topic("out", self.brokers, isolation="read_committed", columns=["value"])
            if table.num_rows >= self.rows or time.monotonic() > deadline:
                break
            time.sleep(0.1)
        found = Counter(table["value"].to_pylist())
        expected = {b"%d" % number for number in range(self.rows)}
        return {
            "missing": sorted(expected - found.keys())[:20],
            "repeated": sorted(value for value, count in found.items() if count > 1)[:20],
            "strange": sorted(found.keys() - expected)[:20],
        }

    def close(self) -> None:
        if self.is_running:
            self.kill_driver()
        self._close_pipe()
        self._errors.close()

    def _close_pipe(self) -> None:
        if self._query is not None and self._query.stdout is not None:
            self._query.stdout.close()


def kill_somewhere(chaos: Chaos, broker: BrokerProcess | None, dice: random.Random, what: str) -> str | None:
    """Kill `what` at a random time while the query runs.

    Return None if the query has ended before.
    """
    time.sleep(dice.uniform(0.0, 4.0))
    if not chaos.is_running:
        return None
    if what == "broker" and broker is not None:
        broker.kill()
        time.sleep(dice.uniform(0.0, 1.0))
        broker.start()
    elif what == "workers":
        chaos.kill_workers()
    else:
        chaos.kill_driver()
    return what
