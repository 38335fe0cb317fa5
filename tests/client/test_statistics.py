"""Tests of client statistics: requests, latencies, records, lag and groups, as snapshots and reports."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from penstock import Admin, Consumer, Producer, TopicPartition
from penstock.client import AsyncConsumer, AsyncProducer, Statistics
from penstock.client.addresses import Address
from penstock.client.cluster.retry import ENTRIES_MAX, Troubles
from penstock.client.counters import (
    BROKERS_COUNTED_MAX,
    ClientCounters,
    Durations,
    bucket_limits,
    bucket_of,
)
from penstock.client.statistics import Window
from penstock.errors import ConfigError, NetworkError
from penstock.testing import KafkaBroker

NewTopic = Callable[..., str]


def test_of_a_producer(servers: str, new_topic: NewTopic) -> None:
    topic = new_topic(2)
    with Producer(servers, client_id="shop", linger_ms=60_000) as producer:
        assert producer.stats().txmsgs == 0
        for number in range(10):
            producer.send(topic, b"x" * 100, partition=number % 2)
        before = producer.stats()
        assert (before.msg_cnt, before.partitions[TopicPartition(topic, 0)].msgq_cnt) == (10, 5)
        assert before.msg_size == sum(each.msgq_bytes for each in before.partitions.values()) > 1_000
        assert before.msg_size_max == 32 << 20
        producer.flush()
        after = producer.stats()
    assert (after.client_id, after.type) == ("shop", "producer")
    assert (after.msg_cnt, after.txmsgs, after.txmsg_bytes) == (0, 10, before.msg_size)
    assert after.partitions[TopicPartition(topic, 1)].txmsgs == 5
    [broker] = after.brokers.values()
    assert broker.name == servers
    assert (broker.state, broker.connects, broker.disconnects, broker.waitresp_cnt) == ("UP", 1, 0, 0)
    assert broker.req["Produce"] >= 1
    assert broker.req["Metadata"] >= 1
    assert after.tx == broker.tx >= broker.rx == sum(broker.req.values())
    assert after.tx_bytes == broker.txbytes > 1_000
    assert 0 < broker.rtt.min <= broker.rtt.percentile(50) <= broker.rtt.percentile(99) <= broker.rtt.max
    assert broker.rtt.cnt == broker.rx
    difference = after.since(before)
    assert (difference.txmsgs, difference.msg_cnt, difference.age) == (10, 0, after.age - before.age)
    assert difference.brokers[servers].req["Produce"] == broker.req["Produce"]
    assert difference.brokers[servers].req["Metadata"] == 0
    assert difference.brokers[servers].rtt.cnt == difference.rx < after.rx
    assert difference.brokers[servers].rtt.max > 0
    assert abs(after.ts - before.ts - difference.age) <= 1


def test_of_a_consumer_of_a_group(servers: str, new_topic: NewTopic) -> None:
    topic = new_topic()
    tp = TopicPartition(topic, 0)
    with Producer(servers, linger_ms=60_000) as producer:
        for number in range(10):
            producer.send(topic, b"%d" % number)
    with Consumer(servers, group_id=topic, auto_offset_reset="earliest", max_poll_records=4) as consumer:
        idle = consumer.stats()
        assert idle.cgrp is not None
        assert (idle.cgrp.state, idle.cgrp.member_id, idle.cgrp.rebalance_cnt) == ("out", "", 0)
        consumer.subscribe(topic)
        while not (found := consumer.poll(5_000)):
            pass
        consumer.commit()
        stats = consumer.stats()
        assert len(found) == 4
        assert stats.rxmsgs == 10
        partition = stats.partitions[tp]
        assert (partition.app_offset, partition.committed_offset, partition.next_offset) == (4, 4, 10)
        assert (partition.hi_offset, partition.lo_offset, partition.consumer_lag) == (10, 0, 6)
        assert partition.rxbytes == stats.rxmsg_bytes > 0
        assert stats.cgrp is not None
        assert (stats.cgrp.group_id, stats.cgrp.state, stats.cgrp.assignment_size) == (topic, "up", 1)
        assert stats.cgrp.member_id == consumer.member_id
        assert stats.cgrp.rebalance_cnt == 1
        [broker] = stats.brokers.values()
        assert broker.fetch_latency.cnt == broker.req["Fetch"] >= 1
        assert broker.rtt.cnt == broker.rx - broker.req["Fetch"]
        consumer.unsubscribe()
        assert consumer.stats().partitions == {}
        assert consumer.stats().rxmsgs == 10


def test_arrow_batches_and_iteration_count_too(servers: str, new_topic: NewTopic) -> None:
    topic = new_topic()
    with Producer(servers, linger_ms=60_000) as producer:
        for _ in range(7):
            producer.send(topic, b"x")
    with Consumer(servers) as consumer:
        consumer.assign([(topic, 0)])
        consumer.seek_to_beginning()
        assert consumer.poll_arrow(5_000, columns=["value"]) is not None
        assert consumer.stats().rxmsgs == 7
        consumer.seek_to_beginning()
        for _, record in zip(range(7), consumer, strict=False):
            assert record.value == b"x"
        assert consumer.stats().rxmsgs == 14
        assert consumer.stats().partitions[TopicPartition(topic, 0)].consumer_lag == 0


def test_the_forms_of_a_snapshot(servers: str, new_topic: NewTopic) -> None:
    topic = new_topic()
    with Producer(servers, client_id="shop") as producer:
        producer.send(topic, b"x").result(timeout=30)
        stats = producer.stats()
    form = json.loads(json.dumps(stats.as_dict()))
    assert form["name"] == form["client_id"] == "shop"
    assert form["topics"][topic]["partitions"]["0"]["txmsgs"] == 1
    broker = form["brokers"][servers]
    assert set(broker["rtt"]) == {
        "min", "max", "avg", "sum", "cnt", "p50", "p75", "p90", "p95", "p99", "p99_99",
    }  # fmt: skip
    assert broker["req"]["Produce"] == 1
    samples = {(name, *labels.values()): value for name, labels, value in stats.samples()}
    assert samples["txmsgs", "shop"] == 1
    assert samples["topics_partitions_txmsgs", "shop", topic, "0"] == 1
    assert samples["brokers_req", "shop", servers, "Produce"] == 1
    assert samples["brokers_rtt_cnt", "shop", servers] == broker["rtt"]["cnt"]
    assert len(samples) == len(list(stats.samples()))


def test_of_an_admin_client(servers: str) -> None:
    with Admin(servers) as admin:
        admin.list_topics()
        stats = admin.stats()
        assert stats.type == "admin"
        assert stats.brokers[servers].req["Metadata"] >= 1


def test_a_broker_that_goes_and_one_that_is_not_there() -> None:
    with KafkaBroker() as broker, Producer(broker.bootstrap_servers) as producer:
        producer.send("orders", b"1").result(timeout=30)
        broker.restart()
        producer.send("orders", b"2").result(timeout=30)
        [counted] = producer.stats().brokers.values()
        assert counted.connects == 2
        assert counted.disconnects == 1
        assert counted.state == "UP"
    producer = Producer("localhost:1", max_block_ms=10)
    with pytest.raises(NetworkError):
        producer.send("orders", b"1")
    [counted] = producer.stats().brokers.values()
    assert (counted.state, counted.connects) == ("DOWN", 0)
    assert counted.connect_failures >= 1
    producer.close()


def test_pauses_that_a_quota_asks_for(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "penstock.client")
    with KafkaBroker() as broker:
        with Admin(broker.bootstrap_servers) as admin:
            admin.set_quotas({"client-id": "shop"}, {"producer_byte_rate": 100.0})
        with Producer(broker.bootstrap_servers, client_id="shop", request_timeout_ms=300) as producer:
            for _ in range(3):
                producer.send("orders", b"x" * 2_000).result(timeout=30)
            [counted] = producer.stats().brokers.values()
            producer.close(0)
    assert counted.throttle.cnt >= 1
    assert counted.throttle.max > 0
    said = [record.getMessage() for record in caplog.records if "throttled" in record.getMessage()]
    assert len(said) == 1
    assert said[0].startswith(f"shop: throttled by {broker.bootstrap_servers}, which asks for a pause of ")


# -- reports


def test_reports_of_a_blocking_client(servers: str) -> None:
    seen: list[tuple[Statistics, str]] = []
    enough = threading.Event()

    def take(stats: Statistics) -> None:
        seen.append((stats, threading.current_thread().name))
        if len(seen) == 3:
            enough.set()
        raise ValueError("not today")

    with Producer(servers, statistics_interval_ms=5, stats_cb=take) as producer:
        assert enough.wait(30)
        assert producer.stats().type == seen[0][0].type == "producer"
    assert {thread for _, thread in seen}.isdisjoint({"MainThread", "penstock-client"})
    count = len(seen)
    time.sleep(0.05)
    assert len(seen) <= count + 1


async def reported(servers: str) -> list[Statistics]:
    seen: asyncio.Queue[Statistics] = asyncio.Queue()
    config: dict[str, Any] = {"statistics.interval.ms": "5", "stats_cb": seen.put}
    async with AsyncProducer(servers, config), AsyncConsumer(servers, config):
        return [await asyncio.wait_for(seen.get(), 30) for _ in range(6)]


def test_reports_of_clients_for_asyncio(servers: str) -> None:
    assert {stats.type for stats in asyncio.run(reported(servers))} == {"producer", "consumer"}


@pytest.mark.parametrize("error", [ValueError("not today"), SystemExit(1), StopIteration()])
def test_a_function_that_raises_is_logged_once(
    servers: str, caplog: pytest.LogCaptureFixture, error: BaseException
) -> None:
    calls = threading.Semaphore(0)

    def fail(stats: Statistics) -> None:
        calls.release()
        raise error

    with Producer(servers, statistics_interval_ms=5, stats_cb=fail):
        for _ in range(3):
            assert calls.acquire(timeout=30)
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == [
        "the function for statistics has failed; it is called again"
    ]


def test_functions_that_block_hold_up_no_client(servers: str, new_topic: NewTopic) -> None:
    topic = new_topic()
    count = min(32, (os.cpu_count() or 1) + 4) + 1  # one more than an event loop's executor has threads
    blocked, go_on = threading.Semaphore(0), threading.Event()

    def block(stats: Statistics) -> None:
        blocked.release()
        go_on.wait()

    producers = [Producer(servers, statistics_interval_ms=1, stats_cb=block) for _ in range(count)]
    try:
        for producer in producers:
            producer.send(topic, b"x").result(30)
        for _ in producers:
            assert blocked.acquire(timeout=30)
        read: list[int] = []

        def read_columns() -> None:  # which are decoded in a thread of that executor
            with Consumer(servers) as consumer:
                consumer.assign([(topic, 0)])
                consumer.seek_to_beginning()
                batch = consumer.poll_arrow(10_000)
                read.append(0 if batch is None else batch.num_rows)

        reading = threading.Thread(target=read_columns, daemon=True)
        reading.start()
        reading.join(30)
        assert read == [count]
        for producer in producers:
            producer.close()
        assert not blocked.acquire(blocking=False), "there is one call at a time"
    finally:
        go_on.set()


def test_a_process_ends_while_a_function_blocks(servers: str) -> None:
    program = f"""
import threading
from penstock import Producer
called = threading.Event()
def block(stats):
    called.set()
    threading.Event().wait()
with Producer({servers!r}, statistics_interval_ms=1, stats_cb=block) as producer:
    producer.send("t", b"x").result(30)
    assert called.wait(30)
"""
    assert subprocess.run([sys.executable, "-c", program], timeout=60, check=False).returncode == 0


def test_a_function_needs_an_interval() -> None:
    for kind in (Admin, Consumer, Producer):
        with pytest.raises(ConfigError, match="belong together"):
            kind("localhost:1", stats_cb=print)
        kind("localhost:1", config={"statistics.interval.ms": "5"}).close()


# -- counters


def test_buckets_follow_each_other_without_a_gap() -> None:
    for value in [
        *range(5_000),
        *(1 << bits for bits in range(13, 40)),
        *((1 << b) - 1 for b in range(13, 40)),
    ]:
        low, high = bucket_limits(bucket_of(value))
        assert low <= value < high
        assert high - low <= max(1, value // 4)
    assert bucket_of(-1) == 0


def test_percentiles_are_right_within_an_eighth() -> None:
    durations = Durations()
    for value in range(1, 10_001):
        durations.add((value + 0.5) / 1e6)
    window = Window.of(durations)
    assert (window.cnt, window.min, window.max, window.avg) == (10_000, 1, 10_000, 5_000)
    for percent in (1, 50, 90, 99, 100):
        assert abs(window.percentile(percent) - percent * 100) <= percent * 100 / 8 + 1
    assert Window().percentile(99) == Window().avg == 0
    durations.add(1.0)
    later = Window.of(durations).since(window)
    assert (later.cnt, later.sum) == (1, 1_000_000)
    assert later.min <= 1_000_000 <= later.max
    assert abs(later.percentile(50) - 1_000_000) <= 125_000


def test_addresses_that_a_cluster_makes_up_have_a_limit() -> None:
    counters = ClientCounters()
    counters.of(Address("used", 1)).is_connected = True
    for port in range(BROKERS_COUNTED_MAX + 50):
        counters.of(Address("other", port)).failures += 1
    assert len(counters.brokers) == BROKERS_COUNTED_MAX
    assert counters.of(Address("used", 1)).is_connected


def test_obstacles_that_a_cluster_makes_up_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    troubles = Troubles()
    for port in range(ENTRIES_MAX):
        troubles.note(Address("other", port), NetworkError("refused"), valid_s=-1)
    troubles.note("group", NetworkError("no coordinator"))
    assert [each.text for each in troubles.present(time.monotonic())] == ["no coordinator; trying again"]
    assert len(troubles._entries) == 1
