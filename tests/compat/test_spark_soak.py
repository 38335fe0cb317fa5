"""A Spark stream copies a topic on three Kafka nodes while Kafka brokers and Spark workers are killed.

Killed leaders and workers are started again, and partitions are added. At the end the copy has every record
exactly once. PENSTOCK_SOAK_SECONDS is the duration in seconds (default 120), PENSTOCK_SEED the seed for the
order of events.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from compat.kafka_cluster import NODES, KafkaCluster
from compat.spark_standalone import Cluster, running_cluster
from penstock import Admin, read_topic, write_topic
from penstock.errors import PenstockError

pytestmark = [pytest.mark.compat, pytest.mark.soak]

HERE = Path(__file__).parent
PORTION = 200
WRITE_EVERY_S = 0.5
RECOVERY_S = 8.0
"""Seconds between a kill and the restart, so that Apache Kafka elects another leader meanwhile."""
PATIENCE_S = 600.0
"""Seconds to wait for the last records to arrive in the copy."""


class Writer(threading.Thread):
    """A thread that writes the numbers 0, 1, 2, ... to the topic `in`; `count` is how many were written."""

    def __init__(self, servers: str) -> None:
        super().__init__(name="writer", daemon=True)
        self.count = 0
        self.error: BaseException | None = None
        self._servers = servers
        self._is_over = threading.Event()

    def run(self) -> None:
        try:
            while not self._is_over.wait(WRITE_EVERY_S):
                texts = pa.array([b"%d" % n for n in range(self.count, self.count + PORTION)], pa.binary())
                # Idempotent and acknowledged by all: through a change of leaders each number is there once.
                settings = {"acks": "all", "enable.idempotence": "true", "delivery.timeout.ms": "300000"}
                write_topic(pa.table({"key": texts, "value": texts}), "in", self._servers, config=settings)
                self.count += PORTION
        except BaseException as error:
            self.error = error

    def end(self) -> None:
        """Let the thread end after the batch of numbers that it is writing."""
        self._is_over.set()

    def stop(self) -> None:
        """End the thread, and wait until all numbers it sent are acknowledged."""
        self.end()
        self.join(300)
        assert not self.is_alive(), "what was written is not acknowledged"
        if self.error is not None:
            raise self.error


class Chaos:
    """The disturbances of the Kafka and Spark clusters, which happen one after another."""

    def __init__(self, kafka: KafkaCluster, spark: Cluster, dice: random.Random) -> None:
        self.done: list[str] = []
        self._kafka, self._spark, self._dice = kafka, spark, dice
        self._partitions = 4

    def leader(self) -> None:
        """Kill the node that leads a partition, and start it again."""
        with Admin(bootstrap_servers=self._kafka.servers) as admin:
            (topic,) = admin.describe_topics(["in"])
            node = self._dice.choice(topic.partitions).leader - 1
        self._kafka.kill(node)
        time.sleep(RECOVERY_S)
        self._kafka.start(node)

    def worker(self) -> None:
        """Kill a worker; another one takes its place."""
        number = self._dice.choice(sorted(self._spark.workers))
        self._spark.kill_worker(number)
        time.sleep(RECOVERY_S)
        self._spark.start_worker(number)

    def partitions(self) -> None:
        """Add a partition to the topic that the query reads."""
        self._partitions += 1
        with Admin(bootstrap_servers=self._kafka.servers) as admin:
            admin.create_partitions("in", self._partitions)

    def go_on(self, seconds: float) -> None:
        """Cause each kind of disturbance once in random order, then random ones until the time is over."""
        actions: list[Callable[[], None]] = [self.leader, self.worker, self.partitions]
        until = time.monotonic() + seconds
        first = self._dice.sample(actions, len(actions))
        while first or time.monotonic() < until:
            action = first.pop() if first else self._dice.choice(actions)
            action()
            self.done.append(action.__name__)
            time.sleep(3)


def arrived(servers: str) -> Counter[int]:
    values = read_topic("out", servers, isolation="read_committed")["value"].to_pylist()
    return Counter(map(int, values))


def wait_for(servers: str, count: int, program: subprocess.Popen[str]) -> Counter[int]:
    """Return how often each number is in the copy.

    The function returns as soon as there are `count` numbers, the program has ended, or PATIENCE_S seconds
    have passed.
    """
    deadline = time.monotonic() + PATIENCE_S
    found: Counter[int] = Counter()
    while time.monotonic() < deadline and program.poll() is None and found.total() < count:
        with contextlib.suppress(PenstockError):  # a node that has just started
            found = arrived(servers)
        time.sleep(1)
    return found


@pytest.mark.timeout(3000)
def test_accounts_are_exact_while_leaders_and_workers_are_killed(tmp_path: Path) -> None:
    seconds = float(os.environ.get("PENSTOCK_SOAK_SECONDS", "120"))
    seed = int(os.environ.get("PENSTOCK_SEED", "1"))
    with KafkaCluster("4.3.0", tmp_path / "kafka", heap_mb=384) as kafka, running_cluster(tmp_path) as spark:
        with Admin(bootstrap_servers=kafka.servers) as admin:
            for topic in ("in", "out"):
                admin.create_topic(topic, partitions=4, replication_factor=NODES)
        command = [
            sys.executable,
            str(HERE / "spark_soak_query.py"),
            spark.master,
            kafka.servers,
            str(tmp_path),
        ]
        with (tmp_path / "driver.log").open("wb") as log:
            program = subprocess.Popen(
                command, env=spark.environment, stdout=subprocess.PIPE, stderr=log, text=True
            )
        writer, chaos = Writer(kafka.servers), Chaos(kafka, spark, random.Random(seed))
        try:
            writer.start()
            # The query runs before anything is done to it.
            assert wait_for(kafka.servers, 1, program), (tmp_path / "driver.log").read_text()[-5000:]
            chaos.go_on(seconds)
            writer.stop()
            found = wait_for(kafka.servers, writer.count, program)
            (tmp_path / "stop").touch()
            told, _ = program.communicate(timeout=120)
        finally:
            writer.end()
            program.kill()
            program.wait()
        driver = (tmp_path / "driver.log").read_text(errors="replace")[-5000:]
    lines = [line for line in told.splitlines() if line.startswith("ACCOUNTS ")]
    assert lines, driver
    accounts = json.loads(lines[0].removeprefix("ACCOUNTS "))
    missing = sorted(set(range(writer.count)) - set(found))[:10]
    repeated = [n for n, times in found.items() if times > 1][:10]
    assert accounts["error"] is None, (accounts, driver)
    assert accounts["name"].startswith("penstock[in] on 127.0.0.1:")
    assert (missing, repeated, found.total()) == ([], [], writer.count), (seed, chaos.done, accounts)
    print(writer.count, "records", accounts["batches"], "batches", sorted(Counter(chaos.done).items()))
