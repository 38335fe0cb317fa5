"""Tests of the blocking clients while Python switches threads often: no record is lost or duplicated.

Races between an application's thread and the background loop, which are otherwise very rare, appear within
half a minute. Part of `make soak`.
"""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from penstock import Admin, Consumer, Producer
from penstock.testing import KafkaBroker

pytestmark = pytest.mark.soak

PARTITIONS = 4
SECONDS = 40.0
Places = list[tuple[int, int]]
"""The partition and offset of each record, in the order in which records were returned."""


@pytest.fixture(autouse=True)
def switching() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def rows(consumer: Consumer, rng: random.Random) -> Places:
    return [(each.partition, each.offset) for each in consumer.poll(5, rng.choice([1, 3, 500]))]


def columns(consumer: Consumer, rng: random.Random) -> Places:
    batch = consumer.poll_arrow(5, columns=("partition", "offset"))
    return [] if batch is None else list(zip(*(each.to_pylist() for each in batch.columns), strict=True))


def by_turns(consumer: Consumer, rng: random.Random) -> Places:
    return rng.choice([rows, columns])(consumer, rng)


def pausing(consumer: Consumer, rng: random.Random) -> Places:
    places = consumer.assignment()
    if places and rng.random() < 0.05:
        consumer.pause([rng.choice(places)])
    if rng.random() < 0.2:
        consumer.resume(places)
    return rows(consumer, rng)


@pytest.mark.parametrize("read", [rows, columns, by_turns, pausing])
@pytest.mark.parametrize("group", [None, "g"])
def test_a_reader_is_handed_every_offset_in_order(
    read: Callable[[Consumer, random.Random], Places], group: str | None
) -> None:
    stopping, sent, rng = threading.Event(), [0] * PARTITIONS, random.Random(7)
    with KafkaBroker() as broker:
        servers = broker.bootstrap_servers
        with Admin(servers) as admin:
            admin.create_topic("t", PARTITIONS)

        def write() -> None:
            drawn = random.Random(8)
            with Producer(servers, linger_ms=0) as producer:
                while not stopping.is_set():
                    for _ in range(drawn.randint(1, 5)):
                        partition = drawn.randrange(PARTITIONS)
                        producer.send("t", b"v", partition=partition)
                        sent[partition] += 1
                    time.sleep(drawn.random() * 0.003)

        writer = threading.Thread(target=write)
        with Consumer(servers, group_id=group, auto_offset_reset="earliest") as consumer:
            if group is None:
                consumer.assign([("t", number) for number in range(PARTITIONS)])
            else:
                consumer.subscribe(["t"])
            wanted, end = [0] * PARTITIONS, time.monotonic() + SECONDS
            writer.start()
            try:
                while time.monotonic() < end or wanted != sent:
                    if time.monotonic() > end:
                        stopping.set()
                    assert time.monotonic() < end + SECONDS, f"{wanted} of {sent} were handed out"
                    for partition, offset in read(consumer, rng):
                        assert offset == wanted[partition]
                        wanted[partition] += 1
            finally:
                stopping.set()
                writer.join()


def test_records_of_several_threads_are_stored_once_and_in_order() -> None:
    threads, sent = 4, [0] * 4
    with KafkaBroker() as broker:
        servers = broker.bootstrap_servers
        with Admin(servers) as admin:
            admin.create_topic("t", PARTITIONS)
        with Producer(servers, linger_ms=1) as producer:
            end = time.monotonic() + SECONDS

            def write(number: int) -> None:
                rng = random.Random(number)
                while time.monotonic() < end:
                    key = rng.choice([None, b"k%d" % rng.randrange(9)])
                    partition = rng.choice([None, rng.randrange(PARTITIONS)])
                    delivery = producer.send(
                        "t", b"%d.%d" % (number, sent[number]), key=key, partition=partition
                    )
                    sent[number] += 1
                    if rng.random() < 0.01:
                        delivery.result(30)

            writers = [threading.Thread(target=write, args=(number,)) for number in range(threads)]
            for writer in writers:
                writer.start()
            for writer in writers:
                writer.join()
        found: dict[tuple[int, int], int] = {}
        with Consumer(servers, auto_offset_reset="earliest") as consumer:
            consumer.assign([("t", number) for number in range(PARTITIONS)])
            last: dict[tuple[int, int], int] = {}
            while records := consumer.poll(2000, 10_000):
                for record in records:
                    assert record.value is not None
                    writer_id, number = map(int, record.value.split(b"."))
                    assert (writer_id, number) not in found
                    assert last.get((writer_id, record.partition), -1) < number
                    found[writer_id, number] = last[writer_id, record.partition] = number
    assert len(found) == sum(sent)
