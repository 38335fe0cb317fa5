"""Compare one-record calls (send, poll, iteration, awaited sends) with confluent-kafka and aiokafka.

All clients use one Penstock broker in a separate process. CPU is that of all threads of the client.
confluent-kafka is tuned: large queues, batches and fetches, no checksums, `consume` of 10,000 messages; one
consumer serves all rounds, since closing it takes seconds.

Each producer run begins with an empty topic, after the former topic was deleted. All consumers read the same
full topic.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import TypeVar

import aiokafka
import confluent_kafka as ck

from broker_process import running_broker
from client_arrow import confluent_consumer, confluent_producer
from harness import Contestant, arguments, measure, print_table, report
from penstock import Admin, Consumer, Producer, TopicPartition
from penstock.client import AsyncConsumer, AsyncProducer

C = TypeVar("C", AsyncConsumer[bytes, bytes], Consumer[bytes, bytes])

PARTITIONS = 4
PLACES = range(PARTITIONS)
VALUE = b"%010d" % 7 + b"x" * 90
KEYS = [b"customer-%07d" % (number * 7_919 % 1_000_003) for number in range(1_000)]


# -- send


def send_confluent(bootstrap: str, topic: str, rows: int) -> None:
    producer = confluent_producer(bootstrap, "none")
    produce = producer.produce
    for number in range(rows):
        produce(topic, VALUE)
        if not number % 10_000:
            producer.poll(0)
    if producer.flush(60):
        raise RuntimeError("records were left")


def send_confluent_with_reports(bootstrap: str, topic: str, rows: int) -> None:
    """Send records with confluent-kafka, with a delivery callback for each record."""
    producer = confluent_producer(bootstrap, "none")
    produce = producer.produce
    count = 0

    def report_one(error: object, _: object) -> None:
        nonlocal count
        count += error is None

    for number in range(rows):
        produce(topic, VALUE, on_delivery=report_one)
        if not number % 10_000:
            producer.poll(0)
    if producer.flush(60) or count != rows:
        raise RuntimeError("records were left")


async def send_aiokafka(bootstrap: str, topic: str, rows: int) -> None:
    producer = aiokafka.AIOKafkaProducer(
        bootstrap_servers=bootstrap, max_batch_size=1_000_000, linger_ms=5, enable_idempotence=True
    )
    await producer.start()
    try:
        for _ in range(rows):
            await producer.send(topic, VALUE)
        await producer.flush()
    finally:
        await producer.stop()


async def send_penstock(bootstrap: str, topic: str, rows: int) -> None:
    async with AsyncProducer(bootstrap, linger_ms=5) as producer:
        for _ in range(rows):
            await producer.send(topic, VALUE)
        await producer.flush()


def send_blocking(bootstrap: str, topic: str, rows: int) -> None:
    with Producer(bootstrap, linger_ms=5) as producer:
        for _ in range(rows):
            producer.send(topic, VALUE)
        producer.flush()


def send_and_look(bootstrap: str, topic: str, rows: int) -> None:
    """Send records, keep the delivery object of each, and check that all of them are done."""
    with Producer(bootstrap, linger_ms=5) as producer:
        deliveries = [producer.send(topic, VALUE) for _ in range(rows)]
        producer.flush()
        assert all(delivery.done() for delivery in deliveries)


# -- send with keys, which decide about partitions


def keyed_confluent(bootstrap: str, topic: str, rows: int) -> None:
    producer = confluent_producer(bootstrap, "none")
    produce = producer.produce
    for _ in range(rows // len(KEYS)):
        for key in KEYS:
            produce(topic, VALUE, key=key)
        producer.poll(0)
    if producer.flush(60):
        raise RuntimeError("records were left")


async def keyed_aiokafka(bootstrap: str, topic: str, rows: int) -> None:
    producer = aiokafka.AIOKafkaProducer(
        bootstrap_servers=bootstrap, max_batch_size=1_000_000, linger_ms=5, enable_idempotence=True
    )
    await producer.start()
    try:
        for _ in range(rows // len(KEYS)):
            for key in KEYS:
                await producer.send(topic, VALUE, key=key)
        await producer.flush()
    finally:
        await producer.stop()


async def keyed_penstock(bootstrap: str, topic: str, rows: int) -> None:
    async with AsyncProducer(bootstrap, linger_ms=5) as producer:
        for _ in range(rows // len(KEYS)):
            for key in KEYS:
                await producer.send(topic, VALUE, key=key)
        await producer.flush()


def keyed_blocking(bootstrap: str, topic: str, rows: int) -> None:
    with Producer(bootstrap, linger_ms=5) as producer:
        for _ in range(rows // len(KEYS)):
            for key in KEYS:
                producer.send(topic, VALUE, key=key)
        producer.flush()


# -- poll, and look at every value


def poll_confluent(consumer: ck.Consumer, topic: str, rows: int) -> None:
    consumer.assign([ck.TopicPartition(topic, p, ck.OFFSET_BEGINNING) for p in PLACES])
    size, left = 0, rows
    while left:
        # It waits for as many as it was asked for, so that the last call must not ask for more than come.
        messages = consumer.consume(min(10_000, left), timeout=10.0)
        if not messages:
            raise RuntimeError(f"{left} of {rows} records are missing")
        left -= len(messages)
        for message in messages:
            size += len(message.value())
    assert size == rows * len(VALUE)
    consumer.unassign()


@asynccontextmanager
async def reading_aiokafka(bootstrap: str, topic: str) -> AsyncIterator[aiokafka.AIOKafkaConsumer]:
    """Yield a consumer of aiokafka at the beginning of each partition."""
    consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=bootstrap, max_partition_fetch_bytes=8 << 20)
    await consumer.start()
    try:
        places = [aiokafka.TopicPartition(topic, p) for p in PLACES]
        consumer.assign(places)
        await consumer.seek_to_beginning(*places)
        yield consumer
    finally:
        await consumer.stop()


def at_beginning(consumer: C, topic: str) -> C:
    """Return a Penstock consumer after seeking to the beginning of each partition."""
    consumer.assign([TopicPartition(topic, p) for p in PLACES])
    consumer.seek_to_beginning()
    return consumer


async def poll_aiokafka(bootstrap: str, topic: str, rows: int) -> None:
    async with reading_aiokafka(bootstrap, topic) as consumer:
        size = 0
        while size < rows * len(VALUE):
            found = await consumer.getmany(timeout_ms=5_000, max_records=10_000)
            for records in found.values():
                for record in records:
                    size += len(record.value)


async def poll_penstock(bootstrap: str, topic: str, rows: int) -> None:
    async with AsyncConsumer(bootstrap) as made:
        consumer, size = at_beginning(made, topic), 0
        while size < rows * len(VALUE):
            for record in await consumer.poll(5_000, 10_000):
                size += len(record.value or b"")


def poll_blocking(bootstrap: str, topic: str, rows: int) -> None:
    with Consumer(bootstrap) as made:
        consumer, size = at_beginning(made, topic), 0
        while size < rows * len(VALUE):
            for record in consumer.poll(5_000, 10_000):
                size += len(record.value or b"")


# -- record by record


def iterate_confluent(consumer: ck.Consumer, topic: str, rows: int) -> None:
    consumer.assign([ck.TopicPartition(topic, p, ck.OFFSET_BEGINNING) for p in PLACES])
    size = 0
    while size < rows * len(VALUE):
        message = consumer.poll(10.0)
        if message is None:
            raise RuntimeError("records are missing")
        size += len(message.value())
    consumer.unassign()


async def iterate_aiokafka(bootstrap: str, topic: str, rows: int) -> None:
    async with reading_aiokafka(bootstrap, topic) as consumer:
        size = 0
        async for record in consumer:
            size += len(record.value)
            if size == rows * len(VALUE):
                break


async def iterate_penstock(bootstrap: str, topic: str, rows: int) -> None:
    async with AsyncConsumer(bootstrap) as made:
        size = 0
        async for record in at_beginning(made, topic):
            size += len(record.value or b"")
            if size == rows * len(VALUE):
                break


def iterate_blocking(bootstrap: str, topic: str, rows: int) -> None:
    with Consumer(bootstrap) as made:
        size = 0
        for record in at_beginning(made, topic):
            size += len(record.value or b"")
            if size == rows * len(VALUE):
                break


# -- one after the other


async def acked_aiokafka(bootstrap: str, topic: str, count: int) -> list[float]:
    producer = aiokafka.AIOKafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=True)
    await producer.start()
    times = []
    try:
        for _ in range(count):
            start = time.perf_counter()
            await producer.send_and_wait(topic, VALUE)
            times.append(time.perf_counter() - start)
    finally:
        await producer.stop()
    return times


async def acked_penstock(bootstrap: str, topic: str, count: int) -> list[float]:
    times = []
    async with AsyncProducer(bootstrap) as producer:
        for _ in range(count):
            start = time.perf_counter()
            await producer.send_and_wait(topic, VALUE)
            times.append(time.perf_counter() - start)
    return times


def acked_blocking(bootstrap: str, topic: str, count: int) -> list[float]:
    times = []
    with Producer(bootstrap) as producer:
        for _ in range(count):
            start = time.perf_counter()
            producer.send(topic, VALUE).result()
            times.append(time.perf_counter() - start)
    return times


def in_asyncio(work: object, *words: object) -> object:
    return asyncio.run(work(*words))  # type: ignore[operator]


def main() -> None:
    options = arguments("client, rows of 100 B", rounds=5)
    rows = 100_000 if options.quick else 500_000
    with running_broker() as bootstrap, Admin(bootstrap) as admin:
        for topic in ("rows", "full", "acked"):
            admin.create_topic(topic, PARTITIONS)
        send_blocking(bootstrap, "full", rows)

        def emptied() -> None:
            admin.delete_topics(["rows"])
            admin.create_topic("rows", PARTITIONS)

        def contest(title: str, topic: str, ways: dict[str, Callable[..., object]]) -> None:
            contestants = [
                Contestant(
                    name,
                    partial(way, topic, rows),
                    rows,
                    rows * len(VALUE),
                    prepare=emptied if topic == "rows" else None,
                )
                for name, way in ways.items()
            ]
            measure(contestants, options.rounds)
            report(title, contestants)

        contest(
            "send and flush",
            "rows",
            {
                "confluent-kafka produce()": partial(send_confluent, bootstrap),
                "confluent-kafka produce(on_delivery=)": partial(send_confluent_with_reports, bootstrap),
                "aiokafka send()": partial(in_asyncio, send_aiokafka, bootstrap),
                "penstock AsyncProducer.send()": partial(in_asyncio, send_penstock, bootstrap),
                "penstock Producer.send()": partial(send_blocking, bootstrap),
                "penstock Producer.send(), deliveries read": partial(send_and_look, bootstrap),
            },
        )
        contest(
            "send with a key of 16 bytes, and flush",
            "rows",
            {
                "confluent-kafka produce()": partial(keyed_confluent, bootstrap),
                "aiokafka send()": partial(in_asyncio, keyed_aiokafka, bootstrap),
                "penstock AsyncProducer.send()": partial(in_asyncio, keyed_penstock, bootstrap),
                "penstock Producer.send()": partial(keyed_blocking, bootstrap),
            },
        )
        reader = confluent_consumer(bootstrap)
        contest(
            "poll, every value looked at",
            "full",
            {
                "confluent-kafka consume(10000)": partial(poll_confluent, reader),
                "aiokafka getmany(10000)": partial(in_asyncio, poll_aiokafka, bootstrap),
                "penstock AsyncConsumer.poll()": partial(in_asyncio, poll_penstock, bootstrap),
                "penstock Consumer.poll()": partial(poll_blocking, bootstrap),
            },
        )
        contest(
            "record by record, every value looked at",
            "full",
            {
                "confluent-kafka poll()": partial(iterate_confluent, reader),
                "aiokafka async for": partial(in_asyncio, iterate_aiokafka, bootstrap),
                "penstock async for": partial(in_asyncio, iterate_penstock, bootstrap),
                "penstock for": partial(iterate_blocking, bootstrap),
            },
        )
        acked: dict[str, list[float]] = {}
        for _ in range(options.rounds):
            for name, work in (("aiokafka", acked_aiokafka), ("penstock, asyncio", acked_penstock)):
                acked.setdefault(name, []).extend(asyncio.run(work(bootstrap, "acked", 300)))
            acked.setdefault("penstock, blocking", []).extend(acked_blocking(bootstrap, "acked", 300))
        print_table(
            "one acknowledged record after the other",
            ("", "p50 ms", "p99 ms"),
            [
                (name, f"{statistics.median(t) * 1e3:.3f}", f"{statistics.quantiles(t, n=100)[98] * 1e3:.3f}")
                for name, t in acked.items()
            ],
        )


if __name__ == "__main__":
    main()
