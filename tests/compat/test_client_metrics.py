"""Metrics that other people's clients push (KIP-714): librdkafka's and Java's arrive, named and readable."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Consumer, Producer

from compat.peers import HERE, java, maven_classpath
from penstock.testing import KafkaBroker

pytestmark = [pytest.mark.compat, pytest.mark.timeout(240)]

PREFIX = "org.apache.kafka."


@pytest.fixture
def broker() -> Iterator[KafkaBroker]:
    with KafkaBroker(penstock_client_metrics=True) as broker:
        broker.create_topic("t")
        yield broker


def wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "no metrics came in 30 s"
        time.sleep(0.02)


def test_librdkafka_pushes_what_is_asked_for(broker: KafkaBroker) -> None:
    broker.subscribe_to_client_metrics([PREFIX + "producer."], match="client_id=rd-p.*", name="a")
    broker.subscribe_to_client_metrics([PREFIX + "consumer.coordinator."], match="client_id=rd-c.*", name="b")
    settings = {"bootstrap.servers": broker.bootstrap_servers, "log_level": 3}
    producers = [Producer({**settings, "client.id": name}) for name in ("rd-producer", "other")]
    consumer = Consumer({**settings, "client.id": "rd-consumer", "group.id": "g", "client.rack": "r1"})
    consumer.subscribe(["t"])

    def work(client_id: str) -> object:
        for each in producers:
            each.produce("t", b"v")
            each.flush(10)
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
    done = java(
        maven_classpath("kafka-4.3.0"), program, broker.bootstrap_servers, "t", 25, timeout_s=120, check=True
    )
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
