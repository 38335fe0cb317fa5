"""Tests of scans that follow a topic: they return existing and then new records until closed or cancelled.

A scan also ends when it has enough records.
"""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import pyarrow as pa
import pytest

from penstock import Admin, Producer, scan_topic, scan_topic_async
from penstock.client.produce.partitioner import PARTITIONERS
from penstock.tables import following

NewTopic = Callable[..., str]
SOON = {"metadata.max.age.ms": 50}
"""Client settings with which new partitions and topics are looked for every 50 ms."""


def write(servers: str, topic: str, *values: bytes, **more: Any) -> None:
    with Producer(servers) as producer:
        for value in values:
            producer.send(topic, value, **more)


def values(scan: Iterator[pa.RecordBatch], count: int) -> list[bytes]:
    """Return the next `count` values; raise AssertionError if the scan returns more."""
    found: list[bytes] = []
    while len(found) < count:
        found += next(scan)["value"].to_pylist()
    assert len(found) == count
    return found


@pytest.fixture
def following_scan(servers: str) -> Iterator[Callable[..., Any]]:
    opened: list[Any] = []

    def scan(topic: Any, **more: Any) -> Any:
        opened.append(scan_topic(topic, servers, follow=True, **more))
        return opened[-1]

    yield scan
    for each in opened:
        each.close()


def test_what_is_there_and_what_comes(servers: str, new_topic: NewTopic, following_scan: Any) -> None:
    topic = new_topic()
    write(servers, topic, b"0", b"1")
    scan = following_scan(topic, columns=["value"])
    assert values(scan, 2) == [b"0", b"1"]
    for number in range(3):
        write(servers, topic, b"new %d" % number)
        assert values(scan, 1) == [b"new %d" % number]
    scan.close()
    assert list(scan) == []


def test_it_begins_where_it_is_told(servers: str, new_topic: NewTopic, following_scan: Any) -> None:
    topic = new_topic()
    write(servers, topic, *(b"%d" % n for n in range(10)))
    assert values(following_scan(topic, last=2), 2) == [b"8", b"9"]
    assert values(following_scan(topic, start=7), 3) == [b"7", b"8", b"9"]
    assert values(following_scan(topic, start={0: 9}), 1) == [b"9"]


def test_a_limit_ends_it(servers: str, new_topic: NewTopic) -> None:
    topic = new_topic()
    write(servers, topic, b"0", b"1", b"2")
    scan = scan_topic(topic, servers, follow=True, limit=2)
    assert scan.read_all()["value"].to_pylist() == [b"0", b"1"]
    assert [batch.num_rows for batch in scan_topic(topic, servers, follow=True, limit=0)] == []


def test_another_thread_ends_a_scan_that_waits(
    servers: str, new_topic: NewTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = threading.Event()
    usual = following.TopicFollower.next_parts

    async def next_parts(self: following.TopicFollower) -> Any:
        waiting.set()
        return await usual(self)

    monkeypatch.setattr(following.TopicFollower, "next_parts", next_parts)
    scan = scan_topic(new_topic(), servers, follow=True)
    found: list[pa.RecordBatch] = []
    thread = threading.Thread(target=lambda: found.extend(scan))
    thread.start()
    assert waiting.wait(20)
    scan.close()
    thread.join(20)
    assert not thread.is_alive()
    assert found == []


def test_partitions_and_topics_that_appear_are_read_from_their_first_record(
    servers: str, new_topic: NewTopic, following_scan: Any
) -> None:
    topic = new_topic()
    write(servers, topic, b"0", b"1")
    scan = following_scan(f"^{topic}(-more)?", start=1, columns=["value"], config=SOON)
    assert values(scan, 1) == [b"1"]
    with Admin(servers) as admin:
        admin.create_partitions(topic, 2)
        write(servers, topic, b"in another partition", partition=1)
        assert values(scan, 1) == [b"in another partition"]
        admin.create_topic(f"{topic}-more")
        write(servers, f"{topic}-more", b"in another topic")
        assert values(scan, 1) == [b"in another topic"]


@pytest.mark.parametrize("count", [1, 9])
def test_a_topic_that_is_created_anew_is_gone_on_with_at_its_beginning(
    servers: str, new_topic: NewTopic, following_scan: Any, count: int, caplog: pytest.LogCaptureFixture
) -> None:
    topic = new_topic()
    write(servers, topic, *(b"old" for _ in range(5)))
    scan = following_scan(topic, columns=["value"])
    assert values(scan, 5) == [b"old"] * 5
    written = [b"new %d" % n for n in range(count)]
    with Admin(servers) as admin:
        admin.delete_topics([topic])
        admin.create_topic(topic)
    write(servers, topic, *written)
    with caplog.at_level(logging.WARNING, "penstock.tables"):
        assert values(scan, count) == written
    assert len([line for line in caplog.messages if "created anew: its id was" in line]) == 1


def test_the_records_of_a_key_as_they_come(servers: str, new_topic: NewTopic, following_scan: Any) -> None:
    topic = new_topic(3)
    mine = PARTITIONERS["murmur2"](b"k", 3)
    scans = [
        following_scan(topic, key=b"k", columns=["value"]),
        following_scan(topic, key=b"k", columns=["value"], partitioner="murmur2_random"),
    ]
    for round_number in range(2):
        write(servers, topic, b"other", key=b"other", partition=mine)
        write(servers, topic, b"mine %d" % round_number, key=b"k")
        assert [values(scan, 1) for scan in scans] == [[b"mine %d" % round_number]] * 2


def test_memory_is_bounded_while_the_reader_is_slow(
    servers: str, new_topic: NewTopic, following_scan: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "FETCH_BYTES", 64 << 10)
    topic = new_topic()
    with Producer(servers, batch_size=10_000) as producer:
        for _ in range(200):
            producer.send(topic, bytes(10_000))
    scan = following_scan(topic, columns=["offset"])
    next(scan)
    with Admin(servers) as admin:
        for _ in range(5):  # time for a fetcher that does not stop
            admin.describe_cluster()
    fetcher = scan._begun()._follower._fetcher
    assert 0 < fetcher.buffer.size_bytes <= 2 * (64 << 10) + 20_000
    assert sum(batch.num_rows for batch in islice(scan, 3)) > 0


def test_for_asyncio(servers: str, new_topic: NewTopic) -> None:
    topic = new_topic()
    write(servers, topic, b"0")

    async def main() -> None:
        scan = scan_topic_async(topic, servers, follow=True, columns=["value"])
        assert (await anext(scan))["value"].to_pylist() == [b"0"]
        await asyncio.to_thread(write, servers, topic, b"1")
        assert (await anext(scan))["value"].to_pylist() == [b"1"]
        # A task that waits is cancelled, and the next one goes on where it was.
        waiting = asyncio.ensure_future(anext(scan))
        await asyncio.sleep(0)
        await scan.aclose()
        with pytest.raises(StopAsyncIteration):
            await waiting
        limited = scan_topic_async(topic, servers, follow=True, limit=2)
        assert sum([batch.num_rows async for batch in limited]) == 2
        cancelled = asyncio.ensure_future(
            anext(scan_topic_async(topic, servers, start="latest", follow=True))
        )
        await asyncio.sleep(0)
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled

    asyncio.run(asyncio.wait_for(main(), 60))


def test_a_scan_that_is_still_followed_holds_up_no_end_of_the_program() -> None:
    program = """
from penstock import Broker, scan_topic, write_topic
import pyarrow as pa
broker = Broker().start()
write_topic(pa.table({"value": [b"v"]}), "t", broker.bootstrap_servers)
kept = scan_topic("t", broker.bootstrap_servers, follow=True)
print(next(kept)["value"].to_pylist())
kept.self = [kept]
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "[b'v']\n"), done.stderr
