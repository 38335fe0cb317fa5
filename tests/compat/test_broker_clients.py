"""Third-party clients against Penstock's broker: each reads what it and the other clients wrote."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from compat.peers import LEAKY_CLIENTS, PATIENCE_S, free_ports, need_module
from compat.places import ONE, THREE, made
from penstock import Broker, Cluster

aiokafka = need_module("aiokafka")
confluent_kafka = need_module("confluent_kafka")
kafka = need_module("kafka")

from aiokafka.admin import AIOKafkaAdminClient  # noqa: E402
from aiokafka.admin import NewTopic as AioNewTopic  # noqa: E402
from confluent_kafka.admin import AdminClient, NewTopic  # noqa: E402

pytestmark = [
    pytest.mark.compat,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    *LEAKY_CLIENTS,
]

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
CLIENTS = ["confluent-kafka", "kafka-python", "aiokafka"]

Row = tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]

ROWS: list[Row] = [
    (b"key", b"value", []),
    (None, b"no key", []),
    (b"tombstone", None, []),
    (b"", b"", []),
    (b"headers", b"x", [("a", b"1"), ("a", b"2"), ("empty", b"")]),
    (b"large", b"0123456789" * 5000, [("h", b"\xff" * 300)]),
    *[(b"k%d" % n, b"v%d" % n * 20, [("n", b"%d" % n)]) for n in range(200)],
]


@pytest.fixture(params=["memory", "disk", THREE])
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Broker | Cluster]:
    place = THREE if request.param == THREE else ONE
    with made(place, tmp_path if request.param == "disk" else None, num_partitions=2) as broker:
        yield broker


# --- writing and reading with each client -------------------------------------------------------------------


def write_confluent(servers: str, topic: str, rows: list[Row], codec: str, idempotent: bool) -> list[int]:
    offsets: list[int] = []

    def delivered(error: Any, message: Any) -> None:
        assert error is None, error
        offsets.append(message.offset())

    producer = confluent_kafka.Producer(
        {"bootstrap.servers": servers, "compression.type": codec, "enable.idempotence": idempotent}
    )
    for key, value, headers in rows:
        producer.produce(topic, value, key, partition=1, headers=headers, on_delivery=delivered)
    assert producer.flush(PATIENCE_S) == 0
    return offsets


def read_confluent(servers: str, topic: str, count: int) -> list[Row]:
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": servers, "group.id": "unused", "enable.auto.commit": False}
    )
    consumer.assign([confluent_kafka.TopicPartition(topic, 1, 0)])
    rows: list[Row] = []
    deadline = time.monotonic() + PATIENCE_S
    while len(rows) < count and time.monotonic() < deadline:
        for message in consumer.consume(500, 0.5):
            assert message.error() is None
            rows.append((message.key(), message.value(), message.headers() or []))
    consumer.close()
    return rows


def write_kafka_python(servers: str, topic: str, rows: list[Row], codec: str, idempotent: bool) -> list[int]:
    producer = kafka.KafkaProducer(
        bootstrap_servers=servers,
        compression_type=None if codec == "none" else codec,
        enable_idempotence=idempotent,
        acks="all",
    )
    sent = [
        producer.send(topic, value, key, partition=1, headers=[(k, v) for k, v in headers])
        for key, value, headers in rows
    ]
    producer.flush(PATIENCE_S)
    offsets = [future.get(PATIENCE_S).offset for future in sent]
    producer.close()
    return offsets


def read_kafka_python(servers: str, topic: str, count: int) -> list[Row]:
    consumer = kafka.KafkaConsumer(bootstrap_servers=servers, group_id=None, enable_auto_commit=False)
    partition = kafka.TopicPartition(topic, 1)
    consumer.assign([partition])
    consumer.seek_to_beginning(partition)
    rows: list[Row] = []
    deadline = time.monotonic() + PATIENCE_S
    while len(rows) < count and time.monotonic() < deadline:
        for records in consumer.poll(500).values():
            rows += [(record.key, record.value, list(record.headers)) for record in records]
    consumer.close()
    return rows


def write_aiokafka(servers: str, topic: str, rows: list[Row], codec: str, idempotent: bool) -> list[int]:
    async def write() -> list[int]:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=servers,
            compression_type=None if codec == "none" else codec,
            enable_idempotence=idempotent,
            acks="all",
        )
        await producer.start()
        try:
            sent = [
                await producer.send(topic, value, key, partition=1, headers=headers)
                for key, value, headers in rows
            ]
            return [(await future).offset for future in sent]
        finally:
            await producer.stop()

    return asyncio.run(write())


def read_aiokafka(servers: str, topic: str, count: int) -> list[Row]:
    async def read() -> list[Row]:
        consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=servers, enable_auto_commit=False)
        await consumer.start()
        try:
            partition = aiokafka.TopicPartition(topic, 1)
            consumer.assign([partition])
            await consumer.seek_to_beginning(partition)
            rows: list[Row] = []
            deadline = time.monotonic() + PATIENCE_S
            while len(rows) < count and time.monotonic() < deadline:
                for records in (await consumer.getmany(timeout_ms=500)).values():
                    rows += [(record.key, record.value, list(record.headers)) for record in records]
            return rows
        finally:
            await consumer.stop()

    return asyncio.run(read())


WRITERS: dict[str, Callable[[str, str, list[Row], str, bool], list[int]]] = {
    "confluent-kafka": write_confluent,
    "kafka-python": write_kafka_python,
    "aiokafka": write_aiokafka,
}
READERS: dict[str, Callable[[str, str, int], list[Row]]] = {
    "confluent-kafka": read_confluent,
    "kafka-python": read_kafka_python,
    "aiokafka": read_aiokafka,
}


@pytest.mark.parametrize("client", CLIENTS)
def test_every_codec_headers_and_tombstones_come_back_unchanged(client: str, broker: Broker) -> None:
    servers = broker.bootstrap_servers
    for codec in CODECS:
        topic = f"t-{codec}"
        idempotent = codec in ("none", "lz4")
        assert WRITERS[client](servers, topic, ROWS, codec, idempotent) == list(range(len(ROWS)))
        assert READERS[client](servers, topic, len(ROWS)) == ROWS, codec


@pytest.mark.parametrize("reader", CLIENTS)
def test_what_one_client_writes_the_others_read(reader: str) -> None:
    with Broker(num_partitions=2) as broker:
        for number, (writer, codec) in enumerate(zip(CLIENTS, ["snappy", "zstd", "lz4"], strict=True)):
            topic = f"t{number}"
            WRITERS[writer](broker.bootstrap_servers, topic, ROWS, codec, True)
            assert READERS[reader](broker.bootstrap_servers, topic, len(ROWS)) == ROWS, writer


# --- old protocols ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [(0, 8, 0), (0, 8, 2), (0, 9), (0, 10, 0), (0, 11)], ids=str)
def test_kafka_python_as_it_was_for_older_brokers(version: tuple[int, ...]) -> None:
    """With an old `api_version`, kafka-python writes message sets of magic 0 or 1, and reads them back."""
    with Broker() as broker:
        for codec in (None, "gzip", "snappy"):
            topic = f"t-{codec}"
            producer = kafka.KafkaProducer(
                bootstrap_servers=broker.bootstrap_servers,
                api_version=version,
                compression_type=codec,
                enable_idempotence=False,
            )
            for n in range(50):
                producer.send(topic, b"v%d" % n, b"k", partition=0)
            producer.flush(PATIENCE_S)
            producer.close()
            consumer = kafka.KafkaConsumer(
                bootstrap_servers=broker.bootstrap_servers, api_version=version, group_id=None
            )
            partition = kafka.TopicPartition(topic, 0)
            consumer.assign([partition])
            consumer.seek_to_beginning(partition)
            values: list[bytes] = []
            deadline = time.monotonic() + PATIENCE_S
            while len(values) < 50 and time.monotonic() < deadline:
                for records in consumer.poll(500).values():
                    values += [record.value for record in records]
            consumer.close()
            assert values == [b"v%d" % n for n in range(50)], codec


@pytest.mark.parametrize("version", ["0.8.0", "0.8.2.2", "0.9.0.1"])
def test_librdkafka_as_it_was_for_older_brokers(version: str) -> None:
    # librdkafka guesses the memory for a Metadata v0 answer from its size, and too low for short names.
    topic = "a-name-of-some-length"
    with Broker() as broker:
        settings = {
            "bootstrap.servers": broker.bootstrap_servers,
            "api.version.request": False,
            "broker.version.fallback": version,
        }
        producer = confluent_kafka.Producer({**settings, "compression.type": "snappy"})
        for n in range(50):
            producer.produce(topic, b"v%d" % n, partition=0)
        assert producer.flush(PATIENCE_S) == 0
        consumer = confluent_kafka.Consumer(
            {**settings, "group.id": "unused", "enable.auto.commit": False, "session.timeout.ms": 6000}
        )
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
        values: list[bytes] = []
        deadline = time.monotonic() + PATIENCE_S
        while len(values) < 50 and time.monotonic() < deadline:
            values += [message.value() for message in consumer.consume(100, 0.5) if not message.error()]
        consumer.close()
        assert values == [b"v%d" % n for n in range(50)]


# --- offsets and metadata -----------------------------------------------------------------------------------


def test_offsets_for_times_as_every_client_asks_for_them(broker: Broker) -> None:
    servers = broker.bootstrap_servers
    write_confluent(servers, "t", ROWS, "none", False)
    partition = kafka.TopicPartition("t", 1)
    consumer = kafka.KafkaConsumer(bootstrap_servers=servers, group_id=None)
    assert consumer.beginning_offsets([partition]) == {partition: 0}
    assert consumer.end_offsets([partition]) == {partition: len(ROWS)}
    assert consumer.offsets_for_times({partition: 0})[partition].offset == 0
    future_ms = int((time.time() + 1000) * 1000)
    assert consumer.offsets_for_times({partition: future_ms})[partition] is None
    consumer.close()

    consumer = confluent_kafka.Consumer({"bootstrap.servers": servers, "group.id": "unused"})
    place = confluent_kafka.TopicPartition("t", 1)
    assert consumer.get_watermark_offsets(place, timeout=PATIENCE_S) == (0, len(ROWS))
    [found] = consumer.offsets_for_times([confluent_kafka.TopicPartition("t", 1, 1)], timeout=PATIENCE_S)
    assert found.offset == 0
    consumer.close()


def test_a_group_member_of_an_empty_topic_gets_nothing_and_closes(broker: Broker) -> None:
    """A kafka-python group member gets no records from an empty topic, and closes without an error."""
    consumer = kafka.KafkaConsumer("t", bootstrap_servers=broker.bootstrap_servers, group_id="g")
    assert consumer.poll(1000) == {}
    consumer.close(autocommit=False)


# --- administration -----------------------------------------------------------------------------------------


def test_confluent_admin(broker: Broker) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    for topic, future in admin.create_topics([NewTopic("a", 3, 1), NewTopic("b", 1, 1)]).items():
        assert future.result(PATIENCE_S) is None, topic
    with pytest.raises(confluent_kafka.KafkaException, match="already exists"):
        admin.create_topics([NewTopic("a", 3, 1)])["a"].result(PATIENCE_S)
    listed = admin.list_topics(timeout=PATIENCE_S)
    assert {name: len(topic.partitions) for name, topic in listed.topics.items()} == {"a": 3, "b": 1}
    ids = list(range(1, len(broker.bootstrap_servers.split(",")) + 1))
    assert listed.controller_id in ids
    described = admin.describe_topics(confluent_kafka.TopicCollection(["a"]))["a"].result(PATIENCE_S)
    assert len(described.partitions) == 3
    cluster = admin.describe_cluster().result(PATIENCE_S)
    assert sorted(node.id for node in cluster.nodes) == ids
    resource = confluent_kafka.admin.ConfigResource(confluent_kafka.admin.ResourceType.TOPIC, "a")
    configs = admin.describe_configs([resource])[resource].result(PATIENCE_S)
    assert configs["retention.ms"].value == "604800000"
    offsets = admin.list_offsets(
        {confluent_kafka.TopicPartition("a", 0): confluent_kafka.admin.OffsetSpec.latest()}
    )
    assert [future.result(PATIENCE_S).offset for future in offsets.values()] == [0]
    assert admin.delete_topics(["a"])["a"].result(PATIENCE_S) is None
    assert set(admin.list_topics(timeout=PATIENCE_S).topics) == {"b"}


def test_kafka_python_admin(broker: Broker) -> None:
    admin = kafka.KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    admin.create_topics([kafka.admin.NewTopic("a", 3, 1, topic_configs={"retention.ms": "5000"})])
    with pytest.raises(kafka.errors.TopicAlreadyExistsError):
        admin.create_topics([kafka.admin.NewTopic("a", 3, 1)])
    assert admin.list_topics() == ["a"]
    assert len(admin.describe_topics(["a"])[0]["partitions"]) == 3
    ids = list(range(1, len(broker.bootstrap_servers.split(",")) + 1))
    assert [found["broker_id"] for found in admin.describe_cluster()["brokers"]] == ids
    resource = kafka.admin.ConfigResource(kafka.admin.ConfigResourceType.TOPIC, "a")
    assert admin.describe_configs([resource])["topic"]["a"]["retention.ms"]["value"] == "5000"
    admin.delete_topics(["a"])
    assert admin.list_topics() == []
    admin.close()


def test_aiokafka_admin(broker: Broker) -> None:
    async def administer() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
        await admin.start()
        try:
            await admin.create_topics([AioNewTopic("a", 3, 1)])
            assert await admin.list_topics() == ["a"]
            assert len((await admin.describe_topics(["a"]))[0]["partitions"]) == 3
            await admin.delete_topics(["a"])
            assert await admin.list_topics() == []
        finally:
            await admin.close()

    asyncio.run(administer())


# --- a broker that dies -------------------------------------------------------------------------------------


def start_process(directory: Path, port: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "penstock.broker", "--data-dir", str(directory), "--port", str(port)]
    popen = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert popen.stdout is not None
    assert popen.stdout.readline().startswith("penstock broker")
    return popen


def test_kill_9_under_an_idempotent_producer_loses_and_repeats_nothing(tmp_path: Path) -> None:
    """The broker is killed repeatedly while one producer runs; each record is stored once."""
    [port] = free_ports(1)
    popen = start_process(tmp_path, port)
    acknowledged: list[int] = []

    def delivered(error: Any, message: Any) -> None:
        assert error is None, error
        acknowledged.append(int(message.value()))

    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": f"127.0.0.1:{port}",
            "enable.idempotence": True,
            "linger.ms": 1,
            "reconnect.backoff.ms": 20,
            "reconnect.backoff.max.ms": 100,
            "retry.backoff.ms": 50,
            "log_level": 0,
        }
    )
    count = 0
    for _ in range(4):
        end = time.monotonic() + 0.4
        while time.monotonic() < end:
            producer.produce("t", b"%d" % count, partition=0, on_delivery=delivered)
            count += 1
            producer.poll(0)
            time.sleep(0.0005)
        popen.send_signal(signal.SIGKILL)
        popen.wait()
        popen.stdout.close()  # type: ignore[union-attr]
        popen = start_process(tmp_path, port)
    assert producer.flush(PATIENCE_S) == 0
    assert sorted(acknowledged) == list(range(count))

    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": f"127.0.0.1:{port}", "group.id": "unused", "enable.auto.commit": False}
    )
    consumer.assign([confluent_kafka.TopicPartition("t", 0, 0)])
    found: list[Any] = []
    deadline = time.monotonic() + PATIENCE_S
    while len(found) < count and time.monotonic() < deadline:
        found += consumer.consume(1000, 0.5)
    assert [int(message.value()) for message in found] == list(range(count))
    assert [message.offset() for message in found] == list(range(count))
    assert consumer.get_watermark_offsets(confluent_kafka.TopicPartition("t", 0), timeout=PATIENCE_S) == (
        0,
        count,
    )
    consumer.close()
    popen.terminate()
    assert popen.wait(PATIENCE_S) == 0
    popen.stdout.close()  # type: ignore[union-attr]
