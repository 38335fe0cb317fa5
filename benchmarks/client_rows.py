"""One record at a time: send, poll and acknowledged sends, beside aiokafka.

All sides talk to one Penstock broker, a process of its own. CPU is the client's.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from functools import partial

import aiokafka

from broker_process import running_broker
from harness import Contestant, arguments, measure, print_table, report
from penstock import Admin, Consumer, Producer, TopicPartition
from penstock.client import AsyncConsumer, AsyncProducer

PARTITIONS = 4
VALUE = b"%010d" % 7 + b"x" * 90


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


async def poll_aiokafka(bootstrap: str, topic: str, rows: int) -> None:
    consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=bootstrap, max_partition_fetch_bytes=8 << 20)
    await consumer.start()
    try:
        places = [aiokafka.TopicPartition(topic, p) for p in range(PARTITIONS)]
        consumer.assign(places)
        await consumer.seek_to_beginning(*places)
        seen = 0
        while seen < rows:
            found = await consumer.getmany(timeout_ms=5_000, max_records=10_000)
            seen += sum(map(len, found.values()))
    finally:
        await consumer.stop()


async def poll_penstock(bootstrap: str, topic: str, rows: int) -> None:
    async with AsyncConsumer(bootstrap) as consumer:
        consumer.assign([TopicPartition(topic, p) for p in range(PARTITIONS)])
        consumer.seek_to_beginning()
        seen = 0
        while seen < rows:
            seen += len(await consumer.poll(5_000, 10_000))


def poll_blocking(bootstrap: str, topic: str, rows: int) -> None:
    with Consumer(bootstrap) as consumer:
        consumer.assign([TopicPartition(topic, p) for p in range(PARTITIONS)])
        consumer.seek_to_beginning()
        seen = 0
        while seen < rows:
            seen += len(consumer.poll(5_000, 10_000))


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
        admin.create_topic("rows", PARTITIONS)
        admin.create_topic("acked", PARTITIONS)
        producers = [
            Contestant("aiokafka send()", partial(in_asyncio, send_aiokafka, bootstrap, "rows", rows), rows),
            Contestant(
                "penstock AsyncProducer.send()",
                partial(in_asyncio, send_penstock, bootstrap, "rows", rows),
                rows,
            ),
            Contestant("penstock Producer.send()", partial(send_blocking, bootstrap, "rows", rows), rows),
        ]
        measure(producers, options.rounds)
        report("send and flush", producers)
        consumers = [
            Contestant(
                "aiokafka getmany(10000)", partial(in_asyncio, poll_aiokafka, bootstrap, "rows", rows), rows
            ),
            Contestant(
                "penstock AsyncConsumer.poll()",
                partial(in_asyncio, poll_penstock, bootstrap, "rows", rows),
                rows,
            ),
            Contestant("penstock Consumer.poll()", partial(poll_blocking, bootstrap, "rows", rows), rows),
        ]
        measure(consumers, options.rounds)
        report("poll", consumers)
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
