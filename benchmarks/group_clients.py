"""Measure consumer groups in clients: time to the first record, overhead while reading, and commits.

    python benchmarks/group_clients.py [--quick] [--rounds N]

Penstock is compared with aiokafka and confluent-kafka; all use one Penstock broker in a separate process.
Members learn of rebalances from heartbeats, which all clients send every 100 ms here. CPU is the client's.
"""

from __future__ import annotations

import asyncio
import statistics
import threading
import time
from collections.abc import Callable
from functools import partial
from itertools import count

import aiokafka
import confluent_kafka

from broker_process import running_broker
from harness import Contestant, arguments, measure, print_table, report
from penstock import Admin, Consumer, Producer, TopicPartition
from penstock.client import AsyncConsumer

PARTITIONS = 4
HEARTBEAT_MS = 100
VALUE = b"%010d" % 7 + b"x" * 90
numbers = count(1)


def confluent_settings(bootstrap: str, group: str) -> dict[str, object]:
    return {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "heartbeat.interval.ms": HEARTBEAT_MS,
        "enable.auto.commit": False,
    }


# --- from joining to the first record -----------------------------------------------------------------------


async def join_penstock(bootstrap: str, topic: str, group: str, members: int) -> None:
    ready = [False] * members

    async def take_part(index: int) -> None:
        options = {"group_id": group, "heartbeat_interval_ms": HEARTBEAT_MS, "enable_auto_commit": False}
        async with AsyncConsumer(bootstrap, auto_offset_reset="earliest", **options) as consumer:
            consumer.subscribe(topic)
            while not all(ready):
                records = await consumer.poll(20)
                ready[index] |= bool(records) and len(consumer.assignment()) == 1

    await asyncio.gather(*(take_part(index) for index in range(members)))


async def join_aiokafka(bootstrap: str, topic: str, group: str, members: int) -> None:
    ready = [False] * members

    async def take_part(index: int) -> None:
        consumer = aiokafka.AIOKafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            heartbeat_interval_ms=HEARTBEAT_MS,
            enable_auto_commit=False,
        )
        await consumer.start()
        try:
            while not all(ready):
                records = await consumer.getmany(timeout_ms=20)
                ready[index] |= bool(records) and len(consumer.assignment()) == 1
        finally:
            await consumer.stop()

    await asyncio.gather(*(take_part(index) for index in range(members)))


def join_confluent(bootstrap: str, topic: str, group: str, members: int) -> None:
    ready = [False] * members

    def take_part(index: int) -> None:
        consumer = confluent_kafka.Consumer(confluent_settings(bootstrap, group))
        consumer.subscribe([topic])
        while not all(ready):
            message = consumer.poll(0.02)
            ready[index] |= message is not None and len(consumer.assignment()) == 1
        consumer.close()

    threads = [threading.Thread(target=take_part, args=(index,)) for index in range(members)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


Join = Callable[[str, str, str, int], None]
JOINS: dict[str, Join] = {
    "Penstock": lambda *what: asyncio.run(join_penstock(*what)),
    "aiokafka": lambda *what: asyncio.run(join_aiokafka(*what)),
    "confluent-kafka": join_confluent,
}


def first_records(bootstrap: str, rounds: int) -> None:
    """Measure the time from the first call until every member has read from its partition and has left."""
    rows = []
    for members in (1, 10, 50):
        topic = f"join{members}"
        fill(bootstrap, topic, members, members)
        seconds: dict[str, list[float]] = {name: [] for name in JOINS}
        for _ in range(rounds):
            for name, join in JOINS.items():
                begin = time.perf_counter()
                join(bootstrap, topic, f"join-{next(numbers)}", members)
                seconds[name].append(time.perf_counter() - begin)
        medians = [statistics.median(found) * 1000 for found in seconds.values()]
        rows.append((f"{members} members", *(f"{median:,.0f}" for median in medians)))
    print_table("Joining, every member's first record, leaving: ms", ("", *JOINS), rows)


# --- reading in a group, and reading alone ------------------------------------------------------------------


PASSES = 5
"""The number of times that a run reads the topic, so that the milliseconds for joining matter little."""


class Passes:
    """A counter of records that seeks its consumer to the beginning whenever the whole topic was read."""

    def __init__(self, consumer: Consumer | AsyncConsumer, rows: int) -> None:
        self.consumer, self.rows, self.seen, self.left = consumer, rows, 0, PASSES

    def count(self, records: int) -> bool:
        """Add records; return True if the last pass over the topic is complete."""
        self.seen += records
        if self.seen < self.rows:
            return False
        self.seen, self.left = 0, self.left - 1
        self.consumer.seek_to_beginning()
        return not self.left


def read(bootstrap: str, topic: str, rows: int, how: str, *, in_group: bool) -> None:
    """Read a topic as a group member with automatic commits, or from assigned partitions."""
    options = {"group_id": f"read-{next(numbers)}"} if in_group else {}
    with Consumer(bootstrap, auto_offset_reset="earliest", **options) as consumer:
        if in_group:
            consumer.subscribe(topic)
        else:
            consumer.assign([TopicPartition(topic, p) for p in range(PARTITIONS)])
        passes = Passes(consumer, rows)
        if how == "for":
            while True:
                for number, _ in enumerate(consumer, 1):
                    if number == rows:
                        break
                if passes.count(rows):
                    return
        while True:
            if how == "lists":
                found = len(consumer.poll(5_000, 10_000))
            else:
                batch = consumer.poll_arrow(5_000)
                found = 0 if batch is None else batch.num_rows
            if passes.count(found):
                return


async def read_async(bootstrap: str, topic: str, rows: int, *, in_group: bool) -> None:
    options = {"group_id": f"read-{next(numbers)}"} if in_group else {}
    async with AsyncConsumer(bootstrap, auto_offset_reset="earliest", **options) as consumer:
        if in_group:
            consumer.subscribe(topic)
        else:
            consumer.assign([TopicPartition(topic, p) for p in range(PARTITIONS)])
        passes = Passes(consumer, rows)
        while True:
            number = 0
            async for _ in consumer:
                number += 1
                if number == rows:
                    break
            if passes.count(rows):
                return


def run_async(bootstrap: str, topic: str, rows: int, how: str, *, in_group: bool) -> None:
    asyncio.run(read_async(bootstrap, topic, rows, in_group=in_group))


def cost_of_a_group(bootstrap: str, rounds: int, rows: int) -> None:
    fill(bootstrap, "read", PARTITIONS, rows)
    for how in ("lists", "for", "async for", "Arrow batches"):
        run = run_async if how == "async for" else read
        sides = []
        for name, in_group in (("assigned", False), ("in a group", True)):
            side = partial(run, bootstrap, "read", rows, how, in_group=in_group)
            sides.append(Contestant(name, side, PASSES * rows, PASSES * rows * len(VALUE)))
        measure(sides, rounds)
        report(f"Reading {rows:,} records {PASSES} times: {how}", sides)


# --- commits ------------------------------------------------------------------------------------------------


def commit_penstock(bootstrap: str, times: int) -> None:
    with Consumer(bootstrap, group_id="commits-1", enable_auto_commit=False) as consumer:
        where = TopicPartition("read", 0)
        consumer.assign([where])
        for offset in range(times):
            consumer.commit({where: offset})


async def commit_penstock_async(bootstrap: str, times: int) -> None:
    async with AsyncConsumer(bootstrap, group_id="commits-2", enable_auto_commit=False) as consumer:
        where = TopicPartition("read", 0)
        consumer.assign([where])
        for offset in range(times):
            await consumer.commit({where: offset})


async def commit_aiokafka(bootstrap: str, times: int) -> None:
    consumer = aiokafka.AIOKafkaConsumer(
        bootstrap_servers=bootstrap, group_id="commits-3", enable_auto_commit=False
    )
    await consumer.start()
    try:
        where = aiokafka.TopicPartition("read", 0)
        consumer.assign([where])
        for offset in range(times):
            await consumer.commit({where: offset})
    finally:
        await consumer.stop()


def commit_confluent(bootstrap: str, times: int) -> None:
    consumer = confluent_kafka.Consumer(confluent_settings(bootstrap, "commits-4"))
    consumer.assign([confluent_kafka.TopicPartition("read", 0)])
    for offset in range(times):
        where = confluent_kafka.TopicPartition("read", 0, offset)
        consumer.commit(offsets=[where], asynchronous=False)
    consumer.close()


def commits(bootstrap: str, rounds: int, times: int) -> None:
    sides = [
        Contestant("Penstock", partial(commit_penstock, bootstrap, times), times),
        Contestant("Penstock, asyncio", lambda: asyncio.run(commit_penstock_async(bootstrap, times)), times),
        Contestant("aiokafka", lambda: asyncio.run(commit_aiokafka(bootstrap, times)), times),
        Contestant("confluent-kafka", partial(commit_confluent, bootstrap, times), times),
    ]
    measure(sides, rounds)
    report("Commits, one after the other", sides, unit="commits")


def fill(bootstrap: str, topic: str, partitions: int, rows: int) -> None:
    with Admin(bootstrap) as admin:
        admin.create_topic(topic, partitions)
    with Producer(bootstrap, linger_ms=20) as producer:
        for number in range(rows):
            producer.send(topic, VALUE, partition=number % partitions)


def main() -> None:
    options = arguments("Consumer groups at the client", rounds=5)
    with running_broker("group.initial.rebalance.delay.ms=0") as bootstrap:
        first_records(bootstrap, options.rounds)
        cost_of_a_group(bootstrap, options.rounds, 50_000 if options.quick else 300_000)
        commits(bootstrap, options.rounds, 200 if options.quick else 2_000)


if __name__ == "__main__":
    main()
