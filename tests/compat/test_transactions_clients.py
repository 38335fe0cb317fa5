"""Third-party transactional producers and `read_committed` consumers at Penstock's broker."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from threading import Timer

import pytest

from compat.peers import (
    LEAKY_CLIENTS,
    PATIENCE_S,
    answers,
    free_ports,
    java,
    maven_classpath,
    need_module,
    until,
)
from compat.places import THREE_AND_AGAIN_ONE, made
from penstock import Broker, Cluster

aiokafka = need_module("aiokafka")
confluent_kafka = need_module("confluent_kafka")
kafka = need_module("kafka")

pytestmark = [
    pytest.mark.compat,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    *LEAKY_CLIENTS,
]

TURNS = 6
"""The number of transactions per producer; every second one is aborted."""
COMMITTED = [b"%d/%d" % (turn, number) for turn in range(0, TURNS, 2) for number in range(3)]


@pytest.fixture(params=THREE_AND_AGAIN_ONE)
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Broker | Cluster]:
    with made(request.param, tmp_path / "data", num_partitions=1) as broker:
        yield broker


def write_confluent(servers: str, topic: str) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": servers, "transactional.id": topic})
    producer.init_transactions(30)
    for turn in range(TURNS):
        producer.begin_transaction()
        for number in range(3):
            producer.produce(topic, b"%d/%d" % (turn, number))
        producer.flush(PATIENCE_S)
        if turn % 2:
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)


def write_kafka_python(servers: str, topic: str) -> None:
    producer = kafka.KafkaProducer(bootstrap_servers=servers, transactional_id=topic)
    producer.init_transactions()
    for turn in range(TURNS):
        producer.begin_transaction()
        for number in range(3):
            producer.send(topic, b"%d/%d" % (turn, number))
        producer.flush()
        if turn % 2:
            producer.abort_transaction()
        else:
            producer.commit_transaction()
    producer.close()


def write_aiokafka(servers: str, topic: str) -> None:
    async def write() -> None:
        async with aiokafka.AIOKafkaProducer(bootstrap_servers=servers, transactional_id=topic) as producer:
            for turn in range(TURNS):
                await producer.begin_transaction()
                for number in range(3):
                    await producer.send_and_wait(topic, b"%d/%d" % (turn, number))
                if turn % 2:
                    await producer.abort_transaction()
                else:
                    await producer.commit_transaction()

    asyncio.run(write())


def read_confluent(servers: str, topic: str, partition: int = 0) -> list[bytes]:
    settings = {"bootstrap.servers": servers, "group.id": "g", "enable.partition.eof": True}
    consumer = confluent_kafka.Consumer(settings)
    consumer.assign([confluent_kafka.TopicPartition(topic, partition, 0)])
    found = []
    try:
        while True:
            message = consumer.poll(PATIENCE_S)
            assert message is not None
            if message.error() is not None:
                return found
            found.append(message.value())
    finally:
        consumer.close()


def read_kafka_python(servers: str, topic: str) -> list[bytes]:
    consumer = kafka.KafkaConsumer(bootstrap_servers=servers, isolation_level="read_committed")
    partition = kafka.TopicPartition(topic, 0)
    consumer.assign([partition])
    consumer.seek_to_beginning(partition)
    end = consumer.end_offsets([partition])[partition]
    found = []
    while consumer.position(partition) < end:
        for rows in consumer.poll(1000).values():
            found += [row.value for row in rows]
    consumer.close()
    return found


def read_aiokafka(servers: str, topic: str) -> list[bytes]:
    async def read() -> list[bytes]:
        partition = aiokafka.TopicPartition(topic, 0)
        consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=servers, isolation_level="read_committed")
        async with consumer:
            consumer.assign([partition])
            await consumer.seek_to_beginning(partition)
            end = (await consumer.end_offsets([partition]))[partition]
            found = []
            while await consumer.position(partition) < end:
                for rows in (await consumer.getmany(timeout_ms=1000)).values():
                    found += [row.value for row in rows]
        return found

    return asyncio.run(read())


WRITERS: dict[str, Callable[[str, str], None]] = {
    "confluent-kafka": write_confluent,
    "kafka-python": write_kafka_python,
    "aiokafka": write_aiokafka,
}
READERS: dict[str, Callable[[str, str], list[bytes]]] = {
    "confluent-kafka": read_confluent,
    "kafka-python": read_kafka_python,
    "aiokafka": read_aiokafka,
}


@pytest.mark.parametrize("writer", WRITERS)
def test_what_is_committed_is_read_by_all(broker: Broker, writer: str) -> None:
    WRITERS[writer](broker.bootstrap_servers, "t")
    for reader, read in READERS.items():
        assert read(broker.bootstrap_servers, "t") == COMMITTED, reader
    broker.close()
    broker.start()
    assert read_confluent(broker.bootstrap_servers, "t") == COMMITTED


def test_offsets_of_a_loop_are_committed_with_its_output(broker: Broker) -> None:
    servers = broker.bootstrap_servers
    write_confluent(servers, "in")
    settings = {"bootstrap.servers": servers, "group.id": "etl", "auto.offset.reset": "earliest"}
    consumer = confluent_kafka.Consumer({**settings, "enable.auto.commit": False})
    consumer.subscribe(["in"])
    producer = confluent_kafka.Producer({"bootstrap.servers": servers, "transactional.id": "etl"})
    producer.init_transactions(30)
    written: list[bytes] = []
    failed = False
    while len(written) < len(COMMITTED):
        rows = [row for row in consumer.consume(2, 5) if row.error() is None]
        if not rows:
            continue
        producer.begin_transaction()
        for row in rows:
            producer.produce("out", row.value())
        positions = consumer.position(consumer.assignment())
        producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), 30)
        if not failed:
            failed = True
            producer.abort_transaction(30)
            for committed in consumer.committed(consumer.assignment(), 30):
                committed.offset = max(committed.offset, 0)
                consumer.seek(committed)
            continue
        producer.commit_transaction(30)
        written += [row.value() for row in rows]
    consumer.close()
    assert written == COMMITTED
    assert read_confluent(servers, "out") == COMMITTED


def test_a_second_producer_of_an_id_fences_the_first(broker: Broker) -> None:
    settings = {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "x"}
    first = confluent_kafka.Producer(settings)
    first.init_transactions(30)
    first.begin_transaction()
    first.produce("t", b"first")
    first.flush(PATIENCE_S)
    second = confluent_kafka.Producer(settings)
    second.init_transactions(30)
    with pytest.raises(confluent_kafka.KafkaException) as raised:
        first.commit_transaction(30)
    assert raised.value.args[0].code() == confluent_kafka.KafkaError._FENCED
    second.begin_transaction()
    second.produce("t", b"second")
    second.commit_transaction(30)
    assert read_confluent(broker.bootstrap_servers, "t") == [b"second"]


def tool(name: str, *args: object) -> str:
    """Run a tool of Apache Kafka 4.3; return its output without its logger's warnings."""
    main = f"org.apache.kafka.tools.{name}"
    done = java(maven_classpath("kafka-4.3.0"), main, *args, check=False)
    lines = f"{done.stdout}{done.stderr}".splitlines()
    return "\n".join(line.strip() for line in lines if not line.startswith("SLF4J"))


def test_java_writes_many_transactions(broker: Broker) -> None:
    """Java's ProducerPerformance uses KIP-890 transactions of 20 ms each, and no record is lost."""
    servers = broker.bootstrap_servers
    told = tool(
        "ProducerPerformance", "--topic", "perf", "--num-records", 20_000, "--record-size", 100,
        "--throughput", 10_000, "--bootstrap-server", servers,
        "--transactional-id", "perf", "--transaction-duration-ms", 20,
    )  # fmt: skip
    assert "20000 records sent" in told, told
    assert len(read_confluent(servers, "perf")) == 20_000


def test_java_describes_and_aborts(broker: Broker) -> None:
    servers = broker.bootstrap_servers
    producer = confluent_kafka.Producer({"bootstrap.servers": servers, "transactional.id": "held"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("t", b"open")
    producer.flush(PATIENCE_S)
    server = ("--bootstrap-server", servers)
    assert "held" in tool("TransactionsCommand", *server, "list")
    described = tool("TransactionsCommand", *server, "describe", "--transactional-id", "held")
    assert "Ongoing" in described
    assert "t-0" in described
    producers = tool("TransactionsCommand", *server, "describe-producers", "--topic", "t", "--partition", 0)
    assert producers.strip().splitlines()[-1].split()[-1] == "0", producers
    told = tool(
        "TransactionsCommand", *server, "abort", "--topic", "t", "--partition", 0, "--start-offset", 0
    )
    assert "Exception" not in told
    asked = ("describe-producers", "--topic", "t", "--partition", 0)

    def has_none_open() -> bool:
        producers = tool("TransactionsCommand", *server, *asked)
        return producers.strip().splitlines()[-1].split()[-1] == "None"

    until(has_none_open, "the transaction ends")
    assert read_confluent(servers, "t") == []
    del producer


def test_a_broker_killed_at_any_time_loses_no_transaction(tmp_path: Path) -> None:
    """Each transaction writes to three partitions and commits an offset.

    The broker is killed at random moments.
    """
    random = Random(17)
    [port] = free_ports(1)
    servers = f"127.0.0.1:{port}"
    settings = {"bootstrap.servers": servers, "log_level": 2}

    def start() -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "penstock.broker", "--port", str(port), "--data-dir", str(tmp_path)]
        command += ["--config", "num.partitions=3"]
        broker = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until(lambda: answers(port), "the broker answers")
        return broker

    broker = start()
    fates: dict[int, str] = {}
    producer = None
    number, kills, kill_at = 0, 0, time.monotonic() + 1
    try:
        while kills < 12:
            if producer is None:
                producer = confluent_kafka.Producer({**settings, "transactional.id": "x"})
                producer.init_transactions(60)
            number += 1
            # However slow the machine: something is committed before each kill.
            is_last = time.monotonic() > kill_at and list(fates.values()).count("committed") > kills
            fates[number] = "aborted"
            try:
                producer.begin_transaction()
                for partition in range(3):
                    producer.produce("t", b"%d" % number, partition=partition)
                producer.flush(PATIENCE_S)
                offsets = [confluent_kafka.TopicPartition("t", 0, number)]
                group = confluent_kafka.Consumer({**settings, "group.id": "etl"})
                producer.send_offsets_to_transaction(offsets, group.consumer_group_metadata(), 30)
                group.close()
                if is_last:
                    Timer(random.uniform(0, 0.02), broker.kill).start()
                patience_s = 3 if is_last else 30
                if number % 4:
                    fates[number] = "unknown"
                    producer.commit_transaction(patience_s)
                    fates[number] = "committed"
                else:
                    producer.abort_transaction(patience_s)
            except confluent_kafka.KafkaException:
                producer = None
            if is_last:
                broker.kill()
                broker.wait(PATIENCE_S)
                broker = start()
                kills, kill_at, producer = kills + 1, time.monotonic() + random.uniform(0.1, 0.8), None
        producer = confluent_kafka.Producer({**settings, "transactional.id": "x"})
        producer.init_transactions(60)
        seen = [{int(value) for value in read_confluent(servers, "t", partition)} for partition in range(3)]
        assert seen[0] == seen[1] == seen[2], "a transaction is visible in part"
        committed = {each for each, fate in fates.items() if fate == "committed"}
        aborted = {each for each, fate in fates.items() if fate == "aborted"}
        assert committed <= seen[0]
        assert not aborted & seen[0]
        consumer = confluent_kafka.Consumer({**settings, "group.id": "etl"})
        [offset] = consumer.committed([confluent_kafka.TopicPartition("t", 0)], 30)
        consumer.close()
        assert offset.offset == max(seen[0])
        assert len(committed) > 10
    finally:
        broker.kill()
        broker.wait(PATIENCE_S)
