"""Other people's clients on a cluster of ours whose brokers are killed and restarted: nothing acknowledged
is lost.

Each client produces with acks=all, idempotent where it can, while one broker after the other dies and comes
back; then a group of the same client reads everything.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from penstock import Consumer, Producer
from penstock.testing import KafkaCluster

pytestmark = [
    pytest.mark.compat,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

DOWN_S = 1.5
"""How long each broker is away: longer than its session of a second."""

READING_S = 30.0


@pytest.fixture
def cluster() -> Iterator[KafkaCluster]:
    with KafkaCluster(3, offsets_topic_num_partitions=3) as cluster:
        cluster.create_topic("t", partitions=3, min_insync_replicas=2)
        yield cluster


def troubled(cluster: KafkaCluster, produce: Callable[[Callable[[], bool]], set[int]]) -> set[int]:
    """Kill and restart every broker while `produce` runs; return the numbers that were acknowledged."""
    ended = threading.Event()
    acknowledged: set[int] = set()
    failures: list[BaseException] = []

    def run() -> None:
        try:
            acknowledged.update(produce(ended.is_set))
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        time.sleep(0.5)
        for node in cluster.node_ids:
            cluster.kill(node)
            time.sleep(DOWN_S)
            cluster.start(node)
            time.sleep(0.5)
    finally:
        ended.set()
        thread.join()
    assert not failures, failures
    assert len(acknowledged) > 50
    return acknowledged


def check(acknowledged: set[int], read: list[int]) -> None:
    """Everything that was acknowledged is there, and nothing twice."""
    assert acknowledged <= set(read), f"lost: {sorted(acknowledged - set(read))[:10]}"
    twice = [each for each, count in Counter(read).items() if count > 1]
    assert not twice, f"there more than once: {twice[:10]}"


def test_our_own_client(cluster: KafkaCluster) -> None:
    servers = cluster.bootstrap_servers

    def produce(has_ended: Callable[[], bool]) -> set[int]:
        done: set[int] = set()
        with Producer(servers, {"enable.idempotence": "true", "acks": "all", "linger.ms": "1"}) as producer:
            number = 0
            while not has_ended():
                producer.send("t", b"%d" % number, key=b"%d" % number).result()
                done.add(number)
                number += 1
        return done

    acknowledged = troubled(cluster, produce)
    read: list[int] = []
    deadline = time.monotonic() + READING_S
    with Consumer(servers, {"group.id": "g", "auto.offset.reset": "earliest"}) as consumer:
        consumer.subscribe(["t"])
        while not acknowledged <= set(read) and time.monotonic() < deadline:
            read += [int(record.value or b"") for record in consumer.poll(500)]
        consumer.commit()
    check(acknowledged, read)


def test_librdkafka(cluster: KafkaCluster) -> None:
    import confluent_kafka

    servers = cluster.bootstrap_servers

    def produce(has_ended: Callable[[], bool]) -> set[int]:
        done: set[int] = set()
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": servers, "enable.idempotence": True, "linger.ms": 1, "log_level": 0}
        )
        number = 0
        while not has_ended():
            value = number

            def delivered(error: object, message: object, value: int = value) -> None:
                if error is None:
                    done.add(value)

            producer.produce("t", b"%d" % number, key=b"%d" % number, on_delivery=delivered)
            producer.poll(0.002)
            number += 1
        assert producer.flush(30) == 0
        assert len(done) == number
        return done

    acknowledged = troubled(cluster, produce)
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    read: list[int] = []
    deadline = time.monotonic() + READING_S
    try:
        consumer.subscribe(["t"])
        while not acknowledged <= set(read) and time.monotonic() < deadline:
            found = [each for each in consumer.consume(500, 0.5) if each.error() is None]
            read += [int(each.value() or b"") for each in found]
        consumer.commit(asynchronous=False)
        cluster.move_coordinator(group="g")
        assert committed(consumer) == len(read)
    finally:
        consumer.close()
    check(acknowledged, read)


def committed(consumer: Any) -> int:
    """The sum of the group's offsets. librdkafka reports 16 to the caller, and asks for the coordinator
    again.
    """
    import confluent_kafka

    deadline = time.monotonic() + READING_S
    while True:
        try:
            return sum(max(0, each.offset) for each in consumer.committed(consumer.assignment(), 20))
        except confluent_kafka.KafkaException as error:
            if error.args[0].code() != 16 or time.monotonic() > deadline:
                raise
            consumer.poll(0.2)


def test_aiokafka(cluster: KafkaCluster) -> None:
    import aiokafka

    servers = cluster.bootstrap_servers

    async def produce_all(has_ended: Callable[[], bool]) -> set[int]:
        done: set[int] = set()
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=servers, enable_idempotence=True, request_timeout_ms=20_000
        )
        await producer.start()
        try:
            number = 0
            while not has_ended():
                await producer.send_and_wait("t", b"%d" % number, key=b"%d" % number)
                done.add(number)
                number += 1
        finally:
            await producer.stop()
        return done

    acknowledged = troubled(cluster, lambda has_ended: asyncio.run(produce_all(has_ended)))

    async def read_all() -> list[int]:
        consumer = aiokafka.AIOKafkaConsumer(
            "t", bootstrap_servers=servers, group_id="g", auto_offset_reset="earliest"
        )
        await consumer.start()
        read: list[int] = []
        deadline = time.monotonic() + READING_S
        try:
            while not acknowledged <= set(read) and time.monotonic() < deadline:
                for records in (await consumer.getmany(timeout_ms=500)).values():
                    read += [int(record.value) for record in records]
            await consumer.commit()
        finally:
            await consumer.stop()
        return read

    check(acknowledged, asyncio.run(read_all()))
