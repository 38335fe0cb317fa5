"""Kafka Connect and MirrorMaker 2, unchanged, against Penstock's broker.

`make soak` also runs the tests against three Penstock brokers, and against Apache Kafka.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from compat import peers
from compat.peers import PATIENCE_S, free_ports, java_command, maven_classpath, real_kafka
from compat.places import ONE_AND_LATER_THREE, PLACES, made
from penstock import Admin, Consumer, Producer, TopicPartition

pytestmark = [pytest.mark.compat, pytest.mark.timeout(600)]

SETTINGS = {"offsets.topic.num.partitions": "5"}
CONNECT = "org.apache.kafka.connect"
FILES = f"{CONNECT}.file.FileStream"
WORKER = {
    "group.id": "workers",
    "key.converter": f"{CONNECT}.storage.StringConverter",
    "value.converter": f"{CONNECT}.storage.StringConverter",
    "config.storage.topic": "connect-configs",
    "offset.storage.topic": "connect-offsets",
    "status.storage.topic": "connect-status",
    "config.storage.replication.factor": 1,
    "offset.storage.replication.factor": 1,
    "status.storage.replication.factor": 1,
    "offset.storage.partitions": 5,
    "offset.flush.interval.ms": 500,
    "plugin.discovery": "service_load",
    "scheduled.rebalance.max.delay.ms": 500,
    "session.timeout.ms": 6000,
    "heartbeat.interval.ms": 1000,
}


def until(holds: Callable[[], bool], what: str) -> None:
    """Wait until a condition holds; a connection error while evaluating it counts as false."""

    def can_be_asked_and_holds() -> bool:
        with contextlib.suppress(OSError):
            return holds()
        return False

    peers.until(can_be_asked_and_holds, what)


@pytest.fixture(params=[*ONE_AND_LATER_THREE, pytest.param("Apache Kafka", marks=pytest.mark.soak)])
def servers(request: pytest.FixtureRequest) -> Iterator[tuple[str, str]]:
    """Provide the bootstrap servers of two separate clusters."""
    with contextlib.ExitStack() as stack:
        if request.param in PLACES:
            brokers = [stack.enter_context(made(request.param, config=SETTINGS)) for _ in range(2)]
            yield brokers[0].bootstrap_servers, brokers[1].bootstrap_servers
        else:
            yield (
                stack.enter_context(real_kafka("4.3.0", settings=SETTINGS)),
                stack.enter_context(real_kafka("4.3.0", settings=SETTINGS)),
            )


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Callable[[str, str, Mapping[str, object]], subprocess.Popen[bytes]]]:
    """Provide a function that runs a Java class with a properties file.

    All processes are killed when the test ends.
    """
    with contextlib.ExitStack() as stack:

        def started(main: str, name: str, settings: Mapping[str, object]) -> subprocess.Popen[bytes]:
            file = tmp_path / f"{name}.properties"
            file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
            output = stack.enter_context((tmp_path / f"{name}.log").open("wb"))
            command = java_command(maven_classpath("connect"), main, file)
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=tmp_path
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process

        yield started


def ask(port: int, method: str, path: str, body: object = None) -> Any:
    """Call a worker's REST interface."""
    data = None if body is None else json.dumps(body).encode()
    url = f"http://127.0.0.1:{port}{path}"
    request = urllib.request.Request(
        url, method=method, data=data, headers={"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=90) as answer:
        text = answer.read()
    return json.loads(text) if text else None


def runs_on(port: int, name: str) -> bool:
    """Return True if a connector and its task run on the worker with this port."""
    status = ask(port, "GET", f"/connectors/{name}/status")
    parts = [status["connector"], *status["tasks"]]
    return len(parts) == 2 and all(
        part["state"] == "RUNNING" and part["worker_id"].endswith(f":{port}") for part in parts
    )


def offsets(port: int, name: str) -> list[dict[str, Any]]:
    """Return the offsets of a connector, from the worker's REST interface."""
    found: list[dict[str, Any]] = ask(port, "GET", f"/connectors/{name}/offsets")["offsets"]
    return found


def forget(port: int, name: str) -> None:
    """Stop a connector and delete its offsets; a sink's offsets are those of its consumer group."""
    until(lambda: ask(port, "PUT", f"/connectors/{name}/stop") is None, "a stop")
    until(lambda: not ask(port, "GET", f"/connectors/{name}/status")["tasks"], "its end")
    forgotten = f"/connectors/{name}/offsets"
    until(lambda: bool(ask(port, "DELETE", forgotten)) and not offsets(port, name), "forgotten offsets")


def test_a_file_through_a_topic_into_a_file(
    servers: tuple[str, str], run: Callable[..., subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    """When one of two Connect workers is killed, its connectors move to the other, and no line is lost."""
    source, sink = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("".join(f"line {n}\n" for n in range(500)))
    ports = free_ports(2)
    workers = [
        run(
            f"{CONNECT}.cli.ConnectDistributed",
            f"worker-{port}",
            {**WORKER, "bootstrap.servers": servers[0], "listeners": f"http://127.0.0.1:{port}"},
        )
        for port in ports
    ]
    first, second = ports
    until(lambda: all(ask(port, "GET", "/connectors") == [] for port in ports), "the workers")
    reads = {"connector.class": f"{FILES}SourceConnector", "file": str(source), "topic": "lines"}
    writes = {"connector.class": f"{FILES}SinkConnector", "file": str(sink), "topics": "lines"}
    writes["consumer.override.session.timeout.ms"] = "6000"
    until(lambda: bool(ask(first, "PUT", "/connectors/reads/config", reads)), "a source")
    until(lambda: bool(ask(first, "PUT", "/connectors/writes/config", writes)), "a sink")
    until(lambda: sink.exists() and sink.read_text() == source.read_text(), "the copy")

    workers[0].kill()
    until(lambda: runs_on(second, "reads") and runs_on(second, "writes"), "the other worker")
    with source.open("a") as file:
        file.write("".join(f"more {n}\n" for n in range(500)))
    whole = source.read_text()
    until(lambda: set(sink.read_text().splitlines()) == set(whole.splitlines()), "the rest")
    place = {"filename": str(source)}
    until(
        lambda: [where["partition"] for where in offsets(second, "reads")] == [place], "its place in the file"
    )
    forget(second, "reads")
    forget(second, "writes")
    with Admin(bootstrap_servers=servers[0]) as admin:
        for topic in ("connect-configs", "connect-offsets", "connect-status"):
            assert admin.describe_config(topic)["cleanup.policy"].value == "compact"


def read(servers: str, topic: str) -> list[tuple[object, ...]]:
    """Return all records of a topic with three partitions, sorted by partition and offset."""
    partitions = [TopicPartition(topic, number) for number in range(3)]
    rows: list[tuple[object, ...]] = []
    with Consumer(bootstrap_servers=servers) as consumer:
        consumer.assign(partitions)
        ends = consumer.end_offsets(partitions)
        consumer.seek_to_beginning()
        while any(consumer.position(partition) < end for partition, end in ends.items()):
            rows += [
                (r.partition, r.offset, r.timestamp, r.key, r.value, tuple(r.headers))
                for r in consumer.poll(timeout_ms=500)
            ]
    return sorted(rows)


def test_mirror_maker(servers: tuple[str, str], run: Callable[..., subprocess.Popen[bytes]]) -> None:
    """MirrorMaker 2 copies topics with configurations, complete records, and consumer group offsets."""
    here, there = servers
    settings = {"retention.ms": "123456789", "cleanup.policy": "compact"}
    with Admin(bootstrap_servers=here) as admin:
        admin.create_topic("orders", 3, config=settings)
    with Producer(bootstrap_servers=here) as producer:
        for n in range(600):
            headers = [("n", b"%d" % n)]
            producer.send("orders", b"value %d" % n, key=b"key %d" % n, headers=headers, timestamp=10**12 + n)
    with Consumer(here, group_id="shop", auto_offset_reset="earliest") as consumer:
        consumer.subscribe("orders")
        bought = 0
        deadline = time.monotonic() + PATIENCE_S
        while bought < 600 and time.monotonic() < deadline:
            bought += len(consumer.poll(timeout_ms=500))
        assert bought == 600
        consumer.commit()
    times = ("refresh.topics", "refresh.groups", "sync.topic.configs", "emit.checkpoints", "emit.heartbeats")
    mirror: dict[str, object] = {
        "clusters": "here, there",
        "here.bootstrap.servers": here,
        "there.bootstrap.servers": there,
        "here->there.enabled": "true",
        "topics": "orders",
        "groups": "shop",
        "replication.factor": 1,
        "offset.lag.max": 0,
        "sync.group.offsets.enabled": "true",
        "sync.group.offsets.interval.seconds": 1,
        "offset.flush.interval.ms": 500,
        "plugin.discovery": "service_load",
    }
    mirror |= {f"{name}.interval.seconds": 1 for name in times}
    internal = ("checkpoints", "heartbeats", "offset-syncs")
    mirror |= {f"{name}.topic.replication.factor": 1 for name in internal}
    mirror |= {f"{name}.storage.replication.factor": 1 for name in ("config", "offset", "status")}
    run(f"{CONNECT}.mirror.MirrorMaker", "mirror", mirror)
    with Admin(bootstrap_servers=there) as admin:
        until(lambda: "here.orders" in admin.list_topics(), "the topic")
        until(lambda: len(read(there, "here.orders")) == 600, "the records")
        assert read(there, "here.orders") == read(here, "orders")
        until(lambda: admin.describe_config("here.orders")["cleanup.policy"].value == "compact", "settings")
        assert admin.describe_config("here.orders")["retention.ms"].value == "123456789"
        until(lambda: sum(committed(admin).values()) >= 600 - 3, "the offsets of the group")


def committed(admin: Admin) -> dict[TopicPartition, int]:
    """Return the offsets that the group has committed in the target cluster."""
    found = admin.list_group_offsets("shop")
    return {partition: place.offset for partition, place in found.items()}


def committed_lines(servers: str, topic: str) -> list[str]:
    """Return the values of all committed records in a topic with one partition."""
    settings = {"isolation.level": "read_committed", "auto.offset.reset": "earliest"}
    with Consumer(servers, settings) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        found: list[str] = []
        while more := consumer.poll(1000):
            found += [(record.value or b"").decode() for record in more]
    return found


@pytest.mark.soak
def test_a_source_writes_exactly_once(
    servers: tuple[str, str], run: Callable[..., subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    """KIP-618: a worker is killed during its transactions, and another one continues its work."""
    source = tmp_path / "in.txt"
    source.touch()
    lines = [f"line {n}" for n in range(3000)]
    ports = free_ports(2)
    settings = {**WORKER, "bootstrap.servers": servers[0], "exactly.once.source.support": "enabled"}
    workers = {
        port: run(
            f"{CONNECT}.cli.ConnectDistributed",
            f"worker-{port}",
            {**settings, "listeners": f"http://127.0.0.1:{port}"},
        )
        for port in ports
    }
    until(lambda: all(ask(port, "GET", "/connectors") == [] for port in ports), "the workers")
    reads = {"connector.class": f"{FILES}SourceConnector", "file": str(source), "topic": "once"}
    reads |= {"exactly.once.support": "required", "transaction.boundary": "poll"}
    until(lambda: bool(ask(ports[0], "PUT", "/connectors/reads/config", reads)), "a source")
    victims: list[int] = []
    for start in range(0, len(lines), 50):
        with source.open("a") as file:
            file.write("".join(f"{line}\n" for line in lines[start : start + 50]))
        if start == 1000:
            until(lambda: len(committed_lines(servers[0], "once")) >= 500, "the first lines")
            [task] = ask(ports[0], "GET", "/connectors/reads/status")["tasks"]
            victims += [port for port in ports if task["worker_id"].endswith(f":{port}")]
        if start == 1500:
            [victim] = victims
            workers[victim].kill()
            workers[victim].wait()
        time.sleep(0.02)
    until(lambda: len(committed_lines(servers[0], "once")) >= len(lines), "all lines")
    assert committed_lines(servers[0], "once") == lines
