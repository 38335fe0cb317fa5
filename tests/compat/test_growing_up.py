"""The steps of docs/how-to/growing-up.md: from one Penstock broker to three nodes of Apache Kafka."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat.handover import IN_TRANSACTIONS, PLAIN, Connected, Turns
from compat.peers import LEAKY_CLIENTS, answers, free_ports, java, java_command, maven_classpath, until
from penstock import Admin
from penstock.log.directory.identity_files import read_meta_properties

pytestmark = [
    pytest.mark.compat,
    pytest.mark.soak,
    pytest.mark.timeout(900),
    *LEAKY_CLIENTS,
]

VERSION = "4.3.0"
STORAGE = "kafka.tools.StorageTool"
QUORUM = "org.apache.kafka.tools.MetadataQuorumCommand"
REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"


class Nodes:
    """Three nodes of Apache Kafka; the first has the data directory of the former Penstock broker."""

    def __init__(self, root: Path, first_port: int) -> None:
        self.root = root
        self._classpath = maven_classpath(f"kafka-{VERSION}")
        more = free_ports(5)
        self.ports = [first_port, *more[:2]]
        self.controllers = more[2:]
        self.servers = ",".join(f"127.0.0.1:{port}" for port in self.ports)
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        for number in range(3):
            self._configure(number)

    def _configure(self, number: int) -> None:
        own, controller = self.ports[number], self.controllers[number]
        listed = ",".join(f"127.0.0.1:{port}" for port in self.controllers)
        directory = self.root / ("data" if number == 0 else f"data{number + 1}")
        settings = {
            "process.roles": "broker,controller",
            "node.id": number + 1,
            "controller.quorum.bootstrap.servers": listed,
            "listeners": f"PLAINTEXT://127.0.0.1:{own},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{own},CONTROLLER://127.0.0.1:{controller}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "log.dirs": directory,
            "group.initial.rebalance.delay.ms": 0,
            "broker.session.timeout.ms": 4000,
            "broker.heartbeat.interval.ms": 500,
        }
        self.file(number).write_text("".join(f"{name}={value}\n" for name, value in settings.items()))

    def file(self, number: int) -> Path:
        return self.root / f"node{number + 1}.properties"

    def tool(self, main: str, *words: object) -> str:
        return java(self._classpath, main, *words, timeout_s=120, check=True).stdout

    def start(self, number: int) -> None:
        command = java_command(self._classpath, "kafka.Kafka", self.file(number), heap_mb=384)
        with (self.root / f"node{number + 1}.log").open("ab") as log:
            self._processes[number] = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.root,
            )
        until(lambda: answers(self.ports[number]), f"node {number + 1} starts")

    def kill(self, number: int) -> None:
        process = self._processes.pop(number)
        process.kill()
        process.wait()

    def stop(self) -> None:
        for number in list(self._processes):
            self.kill(number)


@contextlib.contextmanager
def nodes_after(turns: Turns) -> Iterator[Nodes]:
    nodes = Nodes(turns.root, turns.port)
    try:
        nodes.start(0)
        yield nodes
    finally:
        nodes.stop()


def voters(nodes: Nodes) -> list[int]:
    said = nodes.tool(QUORUM, "--bootstrap-server", nodes.servers, "describe", "--status")
    [line] = [line for line in said.splitlines() if line.startswith("CurrentVoters:")]
    return sorted(each["id"] for each in json.loads(line.partition(":")[2]))


def spread(nodes: Nodes) -> None:
    """Give every partition three replicas, with the tool kafka-reassign-partitions."""
    with Admin(nodes.servers) as admin:
        topics = admin.describe_topics(admin.list_topics(include_internal=True))
    moves = [
        {"topic": topic.name, "partition": index, "replicas": [1 + (index + n) % 3 for n in range(3)]}
        for topic in topics
        for index in range(len(topic.partitions))
    ]
    plan = nodes.root / "plan.json"
    plan.write_text(json.dumps({"version": 1, "partitions": moves}))
    asked = ("--bootstrap-server", nodes.servers, "--reassignment-json-file", plan)
    nodes.tool(REASSIGN, *asked, "--execute")
    until(lambda: "still in progress" not in nodes.tool(REASSIGN, *asked, "--verify"), "the topics move", 300)


def test_from_one_broker_to_three_nodes(tmp_path: Path) -> None:
    turns = Turns(tmp_path)
    with turns.ours():
        with Admin(turns.servers) as admin:
            for topic in (PLAIN, IN_TRANSACTIONS):
                admin.create_topic(topic, 2)
        clients = Connected(turns.servers)
        clients.advance()
    try:
        with nodes_after(turns) as nodes:
            assert voters(nodes) == [1]
            meta = read_meta_properties(str(turns.directory))
            assert meta is not None
            for number in (1, 2):
                words = ("format", "--cluster-id", meta.cluster_id, "--no-initial-controllers")
                nodes.tool(STORAGE, *words, "--config", nodes.file(number))
                nodes.start(number)
                added = f"127.0.0.1:{nodes.controllers[0]}"
                file = nodes.file(number)
                nodes.tool(
                    QUORUM, "--bootstrap-controller", added, "--command-config", file, "add-controller"
                )
            assert voters(nodes) == [1, 2, 3]
            spread(nodes)
            with Admin(nodes.servers) as admin:
                topics = admin.describe_topics(admin.list_topics(include_internal=True))
            assert {len(at.replicas) for topic in topics for at in topic.partitions} == {3}
            clients.advance()
            nodes.kill(0)
            clients.advance()
            nodes.start(0)
            clients.advance()
            clients.finish()
            clients.check()
    finally:
        clients.stop()
