"""Three local nodes of Apache Kafka, each both broker and controller, any of which tests can kill."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

import pytest

from compat.peers import CLUSTER_ID, answers, free_ports, java, java_command, maven_classpath

NODES = 3

START_PATIENCE_S = 300.0
"""Seconds that a node may take to answer: on a busy machine three JVMs start slowly."""


class KafkaCluster:
    """An Apache Kafka cluster that runs during a ``with`` block. Internal topics have three replicas."""

    def __init__(
        self,
        version: str,
        directory: Path,
        heap_mb: int = 512,
        *,
        racks: Sequence[str] = (),
        settings: Mapping[str, object] | None = None,
        features: Mapping[str, int] | None = None,
        patience_s: float = START_PATIENCE_S,
    ) -> None:
        """`racks` are the racks of the nodes, in order.

        `settings` override ours in each `server.properties`. `features` are the initial feature levels,
        where they differ from the release's defaults. `patience_s` is how many seconds a node may take to
        answer.
        """
        self._patience_s = patience_s
        self._racks, self._more, self._features = racks, settings or {}, features or {}
        self._classpath = maven_classpath(f"kafka-{version}")
        self._directory = directory
        self._heap_mb = heap_mb
        ports = free_ports(2 * NODES)
        self.ports, self._controllers = ports[:NODES], ports[NODES:]
        self.servers = ",".join(f"127.0.0.1:{port}" for port in self.ports)
        self.nodes = list(range(NODES))
        """The node numbers that `kill` and `start` take; a node's broker id is its number plus one."""
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> KafkaCluster:
        try:
            for node in range(NODES):
                self._format(node)
            for node in range(NODES):
                self._run(node)
            for node in range(NODES):
                self._wait_for(node, NODES)
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop()

    def kill(self, node: int) -> None:
        """End a node by SIGKILL."""
        process = self._processes.pop(node)
        process.kill()
        process.wait()

    def signal(self, node: int, number: int) -> None:
        """Send a signal to a node's process; SIGSTOP, for example, pauses it."""
        self._processes[node].send_signal(number)

    def start(self, node: int) -> None:
        """Start a node again, and wait until it answers."""
        self._run(node)
        self._wait_for(node, 1)

    def _stop(self) -> None:
        for node in list(self._processes):
            with contextlib.suppress(OSError):
                self.kill(node)

    def _place(self, node: int) -> Path:
        return self._directory / f"node{node + 1}"

    def _format(self, node: int) -> None:
        place = self._place(node)
        place.mkdir(parents=True)
        voters = ",".join(f"{each + 1}@127.0.0.1:{self._controllers[each]}" for each in range(NODES))
        own, controller = self.ports[node], self._controllers[node]
        settings: dict[str, object] = {
            "process.roles": "broker,controller",
            "node.id": node + 1,
            "controller.quorum.voters": voters,
            "listeners": f"PLAINTEXT://127.0.0.1:{own},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{own}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "log.dirs": place / "data",
            "default.replication.factor": NODES,
            "min.insync.replicas": 2,
            "offsets.topic.replication.factor": NODES,
            "offsets.topic.num.partitions": 3,
            "transaction.state.log.replication.factor": NODES,
            "transaction.state.log.min.isr": 2,
            "transaction.state.log.num.partitions": 3,
            "group.initial.rebalance.delay.ms": 0,
            "broker.session.timeout.ms": 3000,
            "broker.heartbeat.interval.ms": 500,
            "controller.quorum.election.timeout.ms": 500,
            "controller.quorum.fetch.timeout.ms": 1000,
            "replica.lag.time.max.ms": 3000,
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": 1000,
        }
        if self._racks:
            settings["broker.rack"] = self._racks[node]
        settings |= self._more
        properties = place / "server.properties"
        properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        java(
            self._classpath,
            "kafka.tools.StorageTool",
            "format",
            "-t",
            CLUSTER_ID,
            "-c",
            properties,
            *(word for name, level in self._features.items() for word in ("--feature", f"{name}={level}")),
            check=True,
        )

    def _run(self, node: int) -> None:
        place = self._place(node)
        settings = place / "server.properties"
        command = java_command(self._classpath, "kafka.Kafka", settings, heap_mb=self._heap_mb)
        with (place / "server.log").open("ab") as output:
            self._processes[node] = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=place
            )

    def _wait_for(self, node: int, brokers: int) -> None:
        deadline = time.monotonic() + self._patience_s
        while not answers(self.ports[node], brokers):
            if self._processes[node].poll() is not None or time.monotonic() > deadline:
                log = (self._place(node) / "server.log").read_text(errors="replace")[-6000:]
                pytest.fail(f"node {node + 1} of Apache Kafka did not start:\n{log}")
            time.sleep(0.1)
