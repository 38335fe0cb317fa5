"""Third-party clients through a gateway to three Apache Kafka 4.3 nodes whose leaders are killed."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from compat.kafka_cluster import KafkaCluster
from compat.peers import LEAKY_CLIENTS, java, maven_classpath
from penstock.client import Admin, Consumer, Producer
from penstock.gateway import Gateway

kafka = pytest.importorskip("kafka")
confluent = pytest.importorskip("confluent_kafka")

pytestmark = [pytest.mark.compat, pytest.mark.timeout(900), *LEAKY_CLIENTS]

PATIENCE_S = 120.0

OLD = [(0, 8, 2), (0, 9), (0, 10, 0), (0, 10, 1), (0, 11), (1, 0), (2, 5)]
"""Values of kafka-python's `api_version`, with which it sends the request versions of that release."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    with KafkaCluster("4.3.0", tmp_path_factory.mktemp("kafka")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def gateway(cluster: KafkaCluster) -> Iterator[Gateway]:
    with Gateway(to=cluster.servers) as gateway:
        yield gateway


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, "too late"
        time.sleep(0.05)


def new_topic(cluster: KafkaCluster, name: str) -> str:
    with Admin(bootstrap_servers=cluster.servers) as admin:
        admin.create_topic(name, partitions=3, replication_factor=3)
    return name


def consumed(gateway: Gateway, topic: str, count: int, **options: Any) -> list[int]:
    """Return the values that a kafka-python consumer reads, in the order in which they arrive."""
    consumer = kafka.KafkaConsumer(
        topic,
        bootstrap_servers=gateway.bootstrap_servers,
        group_id=f"readers of {topic}",
        auto_offset_reset="earliest",
        **options,
    )
    found: list[int] = []
    end = time.monotonic() + PATIENCE_S
    try:
        while len(found) < count and time.monotonic() < end:
            for records in consumer.poll(1000).values():
                found += [int(record.value) for record in records]
        consumer.commit()
    finally:
        consumer.close()
    return found


@pytest.mark.parametrize("release", OLD, ids=lambda release: ".".join(map(str, release)))
def test_clients_of_old_releases(cluster: KafkaCluster, gateway: Gateway, release: tuple[int, ...]) -> None:
    topic = new_topic(cluster, f"old-{'-'.join(map(str, release))}")
    producer = kafka.KafkaProducer(
        bootstrap_servers=gateway.bootstrap_servers, api_version=release, acks="all", compression_type="gzip"
    )
    sent = [producer.send(topic, b"%d" % number, key=b"%d" % (number % 5)) for number in range(500)]
    assert all(each.get(PATIENCE_S).offset >= 0 for each in sent)
    producer.close()
    found = consumed(gateway, topic, 500, api_version=release)
    assert sorted(found) == list(range(500))
    for key in range(5):
        assert [number for number in found if number % 5 == key] == list(range(key, 500, 5)), "in order"
    with Consumer(bootstrap_servers=cluster.servers, group_id=f"readers of {topic}") as consumer:
        committed = consumer.committed([(topic, number) for number in range(3)])
    assert sum(each.offset for each in committed.values() if each is not None) == 500


def words_read(done: subprocess.CompletedProcess[str]) -> list[str]:
    return sorted(line for line in done.stdout.splitlines() if line.startswith("word-"))


@pytest.mark.parametrize("release", ["0.8.2.2", "0.9.0.1", "0.10.2.2"])
@pytest.mark.parametrize(
    "codec", ["none", *(pytest.param(each, marks=pytest.mark.soak) for each in ("gzip", "snappy", "lz4"))]
)
def test_console_tools_of_old_releases(
    cluster: KafkaCluster, gateway: Gateway, release: str, codec: str
) -> None:
    """The console tools of releases from 2015 to 2017 write and read.

    For 0.8 the test uses the consumer that works without ZooKeeper.
    """
    topic = new_topic(cluster, f"tools-{release}-{codec}")
    classpath = maven_classpath(f"kafka-{release}")
    servers = gateway.bootstrap_servers
    words = [f"word-{number:03}" for number in range(200)]
    java(
        classpath,
        "kafka.tools.ConsoleProducer",
        *("--broker-list", servers, "--topic", topic, "--request-required-acks", "-1"),
        *(() if codec == "none" else ("--compression-codec", codec)),
        stdin="".join(f"{word}\n" for word in words),
        check=True,
    )
    if release.startswith("0.8"):
        found: list[str] = []
        for partition in range(3):
            done = java(
                classpath,
                "kafka.tools.SimpleConsumerShell",
                *("--broker-list", servers, "--topic", topic, "--partition", partition),
                *("--offset", "-2", "--no-wait-at-logend"),
            )
            found += words_read(done)
    else:
        done = java(
            classpath,
            "kafka.tools.ConsoleConsumer",
            *("--new-consumer", "--bootstrap-server", servers, "--topic", topic),
            *("--from-beginning", "--max-messages", len(words)),
        )
        found = words_read(done)
    assert sorted(found) == words, done.stderr


def test_clients_of_today(cluster: KafkaCluster, gateway: Gateway) -> None:
    topic = new_topic(cluster, "today")
    producer = confluent.Producer({"bootstrap.servers": gateway.bootstrap_servers, "transactional.id": "tx"})
    producer.init_transactions(PATIENCE_S)
    for number in range(100):
        producer.begin_transaction()
        producer.produce(topic, b"%d" % number)
        if number % 3:
            producer.commit_transaction(PATIENCE_S)
        else:
            producer.abort_transaction(PATIENCE_S)
    options = {
        "bootstrap.servers": gateway.bootstrap_servers,
        "group.id": "today",
        "auto.offset.reset": "earliest",
    }
    consumer = confluent.Consumer({**options, "isolation.level": "read_committed"})
    consumer.subscribe([topic])
    expected = [number for number in range(100) if number % 3]
    found: list[int] = []
    end = time.monotonic() + PATIENCE_S
    while len(found) < len(expected) and time.monotonic() < end:
        message = consumer.poll(1)
        if message is not None and not message.error():
            found.append(int(message.value()))
    consumer.close()
    assert sorted(found) == expected
    with Admin(bootstrap_servers=gateway.bootstrap_servers) as admin:
        assert {node.port for node in admin.describe_cluster().nodes} == {
            each.port for each in gateway.node_ports
        }
    assert all(row.is_spoken for row in gateway.clients() if row.software == "confluent-kafka-python")


@pytest.mark.parametrize(
    "release", [(0, 8, 2), pytest.param(None, marks=pytest.mark.soak)], ids=["0.8.2", "today"]
)
def test_leaders_die_and_nothing_acknowledged_is_lost(
    cluster: KafkaCluster, gateway: Gateway, release: tuple[int, ...] | None
) -> None:
    topic = new_topic(
        cluster, f"dying-{release}".replace(" ", "").strip("()").replace("(", "").replace(",", ".")
    )
    acknowledged: list[int] = []
    stopping = threading.Event()

    def load() -> None:
        options = {} if release is None else {"api_version": release}
        producer = kafka.KafkaProducer(
            bootstrap_servers=gateway.bootstrap_servers, acks="all", retries=1000, **options
        )
        number = 0
        while not stopping.is_set():
            try:
                producer.send(topic, b"%d" % number, partition=number % 3).get(PATIENCE_S)
            except kafka.errors.KafkaError:
                continue
            acknowledged.append(number)
            number += 1
        producer.close()

    thread = threading.Thread(target=load)
    thread.start()
    try:
        for node in (0, 1):
            before = len(acknowledged)
            until(lambda before=before: len(acknowledged) > before + 20)  # type: ignore[misc]
            cluster.kill(node)
            before = len(acknowledged)
            until(lambda before=before: len(acknowledged) > before + 20)  # type: ignore[misc]
            cluster.start(node)
            until(lambda: not any(each.is_away for each in gateway.node_ports))
    finally:
        stopping.set()
        thread.join()
    with Consumer(
        bootstrap_servers=cluster.servers, group_id=f"all of {topic}", auto_offset_reset="earliest"
    ) as consumer:
        consumer.subscribe([topic])
        found: set[int] = set()
        end = time.monotonic() + PATIENCE_S
        while not found.issuperset(acknowledged) and time.monotonic() < end:
            found.update(int(record.value) for record in consumer.poll(100))
    assert found.issuperset(acknowledged)


def test_transactions_of_our_own_client(cluster: KafkaCluster, gateway: Gateway) -> None:
    topic = new_topic(cluster, "ours")
    with Producer(bootstrap_servers=gateway.bootstrap_servers, transactional_id="ours") as producer:
        for number in range(50):
            with producer.transaction():
                producer.send(topic, b"%d" % number, partition=0)
        producer.begin_transaction()
        producer.send(topic, b"-1", partition=0)
        producer.abort_transaction()
    options = {"isolation_level": "read_committed", "auto_offset_reset": "earliest", "group_id": "ours"}
    found: list[int] = []
    with Consumer(bootstrap_servers=gateway.bootstrap_servers, **options) as consumer:
        consumer.subscribe([topic])
        end = time.monotonic() + PATIENCE_S
        while len(found) < 50 and time.monotonic() < end:
            found += [int(record.value) for record in consumer.poll(100)]
    assert found == list(range(50))
