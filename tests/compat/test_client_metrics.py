"""Metrics pushed by librdkafka and the Java clients (KIP-714) arrive at the broker and can be decoded."""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import confluent_kafka
import pytest

from compat.peers import HERE, PATIENCE_S, java, maven_classpath, need, real_kafka, until
from penstock import Admin, Consumer, Producer
from penstock.telemetry.otlp import read_metrics
from penstock.telemetry.points import MetricKind
from penstock.testing import KafkaBroker

pytestmark = pytest.mark.compat

PREFIX = "org.apache.kafka."


@pytest.fixture
def broker() -> Iterator[KafkaBroker]:
    with KafkaBroker(penstock_client_metrics=True) as broker:
        broker.create_topic("t")
        yield broker


def wait_for(condition: Callable[[], object]) -> None:
    until(condition, "metrics come")


def test_librdkafka_pushes_what_is_asked_for(broker: KafkaBroker) -> None:
    broker.subscribe_to_client_metrics([PREFIX + "producer."], match="client_id=rd-p.*", name="a")
    broker.subscribe_to_client_metrics([PREFIX + "consumer.coordinator."], match="client_id=rd-c.*", name="b")
    settings = {"bootstrap.servers": broker.bootstrap_servers, "log_level": 3}
    producers = [
        confluent_kafka.Producer({**settings, "client.id": name}) for name in ("rd-producer", "other")
    ]
    consumer = confluent_kafka.Consumer(
        {**settings, "client.id": "rd-consumer", "group.id": "g", "client.rack": "r1"}
    )
    consumer.subscribe(["t"])

    def work(client_id: str) -> object:
        for each in producers:
            each.produce("t", b"v")
            each.flush(PATIENCE_S)
        consumer.poll(0.05)
        return broker.client_metrics(client_id=client_id)

    wait_for(lambda: work("rd-producer") and work("rd-consumer"))
    names = {row.name for row in broker.client_metrics(client_id="rd-producer")}
    assert {
        PREFIX + "producer.connection.creation.total",
        PREFIX + "producer.node.request.latency.avg",
        PREFIX + "producer.record.queue.time.max",
    } <= names
    of_consumer = PREFIX + "consumer.coordinator.assigned.partitions"
    wait_for(lambda: work("") or [row.value for row in broker.client_metrics(of_consumer)] == [1])
    (row,) = broker.client_metrics(of_consumer)
    assert row.software_name == "confluent-kafka-python"
    assert {"group_id": "g", "client_rack": "r1"}.items() <= row.attributes.items()
    assert broker.client_metrics(client_id="other") == []
    producers.clear()
    consumer.close()
    wait_for(lambda: all(row.is_last for row in broker.client_metrics(client_id="rd-producer")))


def test_java_pushes_everything(broker: KafkaBroker) -> None:
    broker.subscribe_to_client_metrics(interval_ms=200)
    program = HERE / "java" / "client-metrics" / "Pusher.java"
    done = java(maven_classpath("kafka-4.3.0"), program, broker.bootstrap_servers, "t", 25, check=True)
    ids = dict(line.split("\t") for line in done.stdout.splitlines())
    found = {kind: broker.client_metrics(client_id=f"java-{kind}") for kind in ("producer", "consumer")}
    for kind, rows in found.items():
        assert {row.client_instance_id for row in rows} == {ids[kind]}
        assert {row.software_name for row in rows} == {"apache-kafka-java"}
        assert len(rows) > 60
    sums = {
        (row.name.removeprefix(PREFIX), row.labels.get("topic")): row.value
        for rows in found.values()
        for row in rows
        if row.kind == "sum"
    }
    assert sums["producer.topic.record.send.total", "t"] == 25
    assert sums["consumer.fetch.manager.records.consumed.total", "t"] == 25
    assert {row.attributes["group_id"] for row in found["consumer"]} == {"java-group"}


@pytest.mark.soak
def test_apache_kafka_reads_what_our_clients_push(tmp_path: Path) -> None:
    """A metrics plugin in Apache Kafka receives the payload and decodes it with protobuf."""
    classpath = maven_classpath("kafka-4.3.0")
    source = HERE / "java" / "client-metrics" / "Receiver.java"
    subprocess.run([need("javac"), "-nowarn", "-cp", classpath, "-d", tmp_path, source], check=True)
    received = tmp_path / "received"
    settings = {"metric.reporters": "Receiver", "receiver.file": received}

    def pushes(client_id: str) -> list[list[str]]:
        lines = received.read_text().splitlines() if received.exists() else []
        return [line.split("\t") for line in lines if line.startswith(f"{client_id}\t")]

    with real_kafka("4.3.0", settings=settings, classes=tmp_path) as servers:
        with Admin(servers) as admin:
            admin.alter_config(client_metrics="all", set={"metrics": "*", "interval.ms": "200"})
            admin.create_topic("t")
        with (
            Producer(servers, client_id="our-producer") as producer,
            Consumer(
                servers, client_id="our-consumer", group_id="g", auto_offset_reset="earliest"
            ) as consumer,
        ):
            consumer.subscribe("t")
            ids = {
                "our-producer": producer.client_instance_id(),
                "our-consumer": consumer.client_instance_id(),
            }
            seen = 0

            def work() -> bool:
                nonlocal seen
                producer.send("t", b"v").result(timeout=PATIENCE_S)
                seen += len(consumer.poll(50))
                return seen >= 10 and all(len(pushes(each)) >= 3 for each in ids)

            wait_for(work)
        wait_for(lambda: all(pushes(each)[-1][2] == "true" for each in ids))
        line = pushes("our-consumer")[-1]
        assert line[4].split() == [
            f"{point.name}:{'gauge' if point.kind is MetricKind.GAUGE else 'sum'}"
            for point in read_metrics(base64.b64decode(line[3])).points
        ]
        sent = sum(
            point.value
            for line in pushes("our-producer")
            for point in read_metrics(base64.b64decode(line[3])).points
            if point.name == PREFIX + "producer.record.send.total"
        )
        assert sent >= seen >= 10
        assert {line[1] for each in ids for line in pushes(each)} == set(ids.values())
