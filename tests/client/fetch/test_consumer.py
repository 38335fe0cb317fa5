"""Tests of positions, polls and iteration with a real broker; the blocking and asyncio consumers agree."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from itertools import islice
from typing import Any

import pyarrow as pa
import pytest

from penstock import Consumer, Producer, Record, TopicPartition, write_topic
from penstock.client import AsyncConsumer, AsyncProducer
from penstock.errors import ConfigError, KafkaError, NetworkError
from penstock.model import TimestampType

NewTopic = Callable[..., str]


@pytest.fixture
def filled(servers: str, new_topic: NewTopic) -> str:
    """Make a topic with 1000 records, alternating between two partitions, in batches of about ten.

    Each record's value is its offset.
    """
    topic = new_topic(2)
    rows = range(1000)
    table = pa.table(
        {
            "key": [b"k%d" % (n % 2) for n in rows],
            "value": [b"%d" % (n // 2) for n in rows],
            "partition": pa.array([n % 2 for n in rows], pa.int32()),
            "timestamp": pa.array([10 * (n // 2) for n in rows], pa.timestamp("ms")),
        }
    )
    write_topic(table, topic, servers, config={"batch.size": 250}, compression="lz4")
    return topic


def both(topic: str) -> list[TopicPartition]:
    return [TopicPartition(topic, 0), TopicPartition(topic, 1)]


def drained(consumer: Consumer, count: int, **options: Any) -> list[Record]:
    found: list[Record] = []
    deadline = time.monotonic() + 10
    while len(found) < count and time.monotonic() < deadline:
        found += consumer.poll(1000, **options)
    return found


def test_a_record_has_everything(servers: str, new_topic: NewTopic) -> None:
    topic = new_topic()
    with Producer(servers) as producer:
        sent = producer.send(topic, b"v", key=b"k", headers=[("h", b"1"), ("n", None)], timestamp=77).result(
            10
        )
    assert sent == (topic, 0, 0, 77)
    with Consumer(servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([(topic, 0)])
        assert consumer.poll(5000) == [
            Record(topic, 0, 0, 77, TimestampType.CREATE_TIME, b"k", b"v", [("h", b"1"), ("n", None)])
        ]
        assert consumer.poll(50) == []


class _Observed(dict[Any, Any]):
    """A dict of the fetcher's cursors that calls `look` after each removal.

    A poll in another thread could run at that moment.
    """

    def __init__(self, cursors: dict[Any, Any], look: Callable[[], object]) -> None:
        super().__init__(cursors)
        self._look = look

    def pop(self, *key: Any) -> Any:
        found = super().pop(*key)
        self._look()
        return found

    def __delitem__(self, key: Any) -> None:
        super().__delitem__(key)
        self._look()


def test_a_poll_in_another_thread_misses_nothing_while_the_fetcher_takes_an_answer(
    servers: str, new_topic: NewTopic
) -> None:
    """The fetcher moves a partition with records behind the others.

    A poll in another thread must find it at every moment.
    """
    topic = new_topic()

    async def main() -> list[int]:
        found: list[int] = []
        async with AsyncProducer(servers) as producer, AsyncConsumer(servers) as consumer:
            consumer.assign([(topic, 0)])
            consumer.seek((topic, 0), 0)
            await consumer.poll(50)
            fetcher = consumer._fetched.fetcher
            assert fetcher is not None

            def look() -> None:
                found.extend(record.offset for record in consumer.poll_now(100))

            fetcher.cursors = _Observed(fetcher.cursors, look)
            for number in range(5):
                await (await producer.send(topic, b"%d" % number))
                while len(found) <= number:
                    records = await consumer.poll(10_000)
                    assert records or len(found) > number
                    found.extend(record.offset for record in records)
        return found

    assert asyncio.run(main()) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("limit", [1, 7, 500, 10_000])
def test_polls_of_any_size_give_every_record_in_order(servers: str, filled: str, limit: int) -> None:
    with Consumer(servers, auto_offset_reset="earliest") as consumer:
        consumer.assign(both(filled))
        found: list[Record] = []
        while len(found) < 1000:
            records = consumer.poll(1000, limit)
            assert 0 < len(records) <= limit
            found += records
            for where in both(filled):
                seen = [r.offset for r in found if r.partition == where.partition]
                assert seen == list(range(len(seen)))
                assert consumer.position(where) == len(seen)


def test_max_poll_records_is_the_default_limit(servers: str, filled: str) -> None:
    with Consumer(servers, auto_offset_reset="earliest", max_poll_records=3) as consumer:
        consumer.assign(both(filled))
        assert len(consumer.poll(1000)) == 3


def test_a_seek_into_the_middle_of_a_batch(servers: str, filled: str) -> None:
    with Consumer(servers) as consumer:
        consumer.assign(both(filled)[:1])
        for offset in (123, 7, 499, 0, 250):
            consumer.seek(both(filled)[0], offset)
            assert consumer.poll(5000, 1)[0].offset == offset
            assert consumer.position(both(filled)[0]) == offset + 1


def test_latest_is_the_default_and_sees_what_comes(servers: str, filled: str) -> None:
    where = both(filled)[0]
    with Consumer(servers) as consumer, Producer(servers) as producer:
        consumer.assign([where])
        assert consumer.position(where) == 500
        timer = threading.Timer(0.1, lambda: producer.send(filled, b"new", partition=0))
        timer.start()
        assert [r.value for r in consumer.poll(5000)] == [b"new"]
        timer.join()


def test_paused_partitions_wait(servers: str, filled: str) -> None:
    first, second = both(filled)
    with Consumer(servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([first, second])
        consumer.poll(1000, 5)
        before = consumer.position(first)
        consumer.pause([first])
        assert consumer.paused() == {first}
        rest = drained(consumer, 500 - consumer.position(second))
        assert {r.partition for r in rest} == {1}
        assert consumer.position(first) == before
        consumer.resume([first])
        assert drained(consumer, 1)[0].offset == before


def test_assigning_again_keeps_positions(servers: str, filled: str) -> None:
    first, second = both(filled)
    with Consumer(servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([first])
        consumer.poll(1000, 5)
        consumer.assign([first, second])
        assert consumer.assignment() == [first, second]
        assert (consumer.position(first), consumer.position(second)) == (5, 0)
        consumer.assign([second])
        assert {r.partition for r in drained(consumer, 100)} == {1}


def test_offsets_by_time(servers: str, filled: str) -> None:
    first, second = both(filled)
    with Consumer(servers) as consumer:
        assert consumer.beginning_offsets([first, second]) == {first: 0, second: 0}
        assert consumer.end_offsets([first, second]) == {first: 500, second: 500}
        assert consumer.offsets_for_times({first: 1001, second: 99_999}) == {first: 101, second: None}


def test_iteration_moves_the_position_record_by_record(servers: str, filled: str) -> None:
    where = both(filled)[0]
    with Consumer(servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([where])
        for count, record in enumerate(islice(consumer, 300)):
            assert record.offset == count
            assert consumer.position(where) == count + 1
        consumer.seek(where, 42)
        assert next(iter(consumer)).offset == 42


def test_a_seek_within_an_iteration_counts(servers: str, filled: str) -> None:
    where = both(filled)[0]
    with Consumer(servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([where])
        offsets = []
        for record in consumer:
            offsets.append(record.offset)
            if record.offset == 3:
                consumer.seek(where, 400)
            if record.offset == 402:
                break
        assert offsets == [0, 1, 2, 3, 400, 401, 402]


def test_rows_and_columns_may_take_turns(servers: str, filled: str) -> None:
    where = both(filled)[0]
    with Consumer(servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([where])
        offsets = [r.offset for r in consumer.poll(5000, 5)]
        batch = consumer.poll_arrow(5000, columns=["offset", "value"], batch_bytes=500)
        assert batch is not None
        assert batch["value"].to_pylist() == [b"%d" % n for n in batch["offset"].to_pylist()]
        offsets += batch["offset"].to_pylist()
        assert consumer.position(where) == len(offsets)
        offsets += [r.offset for r in consumer.poll(5000, 5)]
        while len(offsets) < 500:
            batch = consumer.poll_arrow(5000, columns=["offset"])
            assert batch is not None
            offsets += batch["offset"].to_pylist()
        assert offsets == list(range(500))
        assert consumer.poll_arrow(50) is None


def test_blocking_and_asyncio_give_the_same(servers: str, filled: str) -> None:
    async def with_asyncio() -> tuple[list[Record], list[Any], dict[Any, Any]]:
        async with AsyncConsumer(servers, auto_offset_reset="earliest") as consumer:
            consumer.assign(both(filled)[:1])
            records: list[Record] = []
            while len(records) < 500:
                records += await consumer.poll(1000, 33)
            consumer.seek_to_beginning()
            rows: list[Any] = []
            while len(rows) < 500:
                batch = await consumer.poll_arrow(1000)
                assert batch is not None
                rows += batch.to_pylist()
            consumer.seek(both(filled)[0], 498)
            tail = []
            async for record in consumer:
                tail.append(record)
                if len(tail) == 2:
                    break
            assert tail == records[-2:]
            return records, rows, await consumer.end_offsets(both(filled))

    with Consumer(servers, auto_offset_reset="earliest") as consumer:
        consumer.assign(both(filled)[:1])
        records: list[Record] = []
        while len(records) < 500:
            records += consumer.poll(1000, 33)
        consumer.seek_to_beginning()
        rows: list[Any] = []
        while len(rows) < 500:
            batch = consumer.poll_arrow(1000)
            assert batch is not None
            rows += batch.to_pylist()
        assert (records, rows, consumer.end_offsets(both(filled))) == asyncio.run(with_asyncio())


def test_a_call_that_is_cancelled_while_a_thread_decodes_has_taken_nothing(
    servers: str, new_topic: NewTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = new_topic(1)
    with Producer(servers) as producer:
        for _ in range(400):
            producer.send(topic, bytes(1000))
    take = AsyncConsumer.poll_arrow_now

    def take_slowly(consumer: AsyncConsumer, *what: Any) -> pa.RecordBatch | None:
        batch = take(consumer, *what)
        time.sleep(0.1 if batch is not None else 0)
        return batch

    monkeypatch.setattr(AsyncConsumer, "poll_arrow_now", take_slowly)

    async def consume() -> list[int]:
        offsets: list[int] = []
        async with AsyncConsumer(servers, auto_offset_reset="earliest", fetch_min_bytes=400_000) as consumer:
            consumer.assign([(topic, 0)])
            for patience_s in (0.05, 0.05, 5, 0.05, 5, 5, 5):
                try:
                    batch = await asyncio.wait_for(consumer.poll_arrow(500, batch_bytes=150_000), patience_s)
                except TimeoutError:
                    continue
                offsets += [] if batch is None else batch.column("offset").to_pylist()
        return offsets

    assert asyncio.run(consume()) == list(range(400))


def test_the_first_batch_of_columns_leaves_the_event_loop_to_heartbeats(
    servers: str, new_topic: NewTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first batch loads and compiles the decoder for seconds, so it is decoded in another thread.

    Otherwise the consumer would send no heartbeats and lose its membership.
    """
    topic = new_topic(1)
    with Producer(servers) as producer:
        producer.send(topic, b"v")
    take = AsyncConsumer.poll_arrow_now
    decoded_on: list[bool] = []

    def watched(consumer: AsyncConsumer, *what: Any) -> pa.RecordBatch | None:
        batch = take(consumer, *what)
        if batch is not None:
            decoded_on.append(threading.current_thread() is threading.main_thread())
        return batch

    monkeypatch.setattr(AsyncConsumer, "poll_arrow_now", watched)

    async def consume() -> None:
        async with AsyncConsumer(servers, group_id=topic) as consumer:
            consumer.assign([(topic, 0)])
            for columns in (["value"], ["value"], ["value", "headers"], ["value", "headers"]):
                consumer.seek((topic, 0), 0)
                while await consumer.poll_arrow(1000, columns=columns) is None:
                    pass

    asyncio.run(consume())
    assert decoded_on == [False, True, False, True]


def test_producers_blocking_and_asyncio_write_the_same(servers: str, new_topic: NewTopic) -> None:
    rows = [(b"k%d" % (n % 5), b"v%d" % n, [("h", b"%d" % n)], n) for n in range(200)]
    table = pa.table({"key": [r[0] for r in rows], "value": [r[1] for r in rows]})

    async def write(topic: str) -> list[int]:
        async with AsyncProducer(servers, compression_type="zstd") as producer:
            sent = [await producer.send(topic, v, key=k, headers=h, timestamp=t) for k, v, h, t in rows]
            assert await (await producer.send_arrow(topic, table)) is not None
            return [(await delivery).partition for delivery in sent]

    first, second = new_topic(3), new_topic(3)
    with Producer(servers, compression_type="zstd") as producer:
        sent = [producer.send(first, v, key=k, headers=h, timestamp=t) for k, v, h, t in rows]
        assert producer.send_arrow(first, table).result(10).rows == 200
        partitions = [delivery.result(10).partition for delivery in sent]
    assert asyncio.run(write(second)) == partitions
    with Consumer(servers, auto_offset_reset="earliest") as consumer:
        found = []
        for topic in (first, second):
            consumer.assign([TopicPartition(topic, p) for p in range(3)])
            records = sorted(drained(consumer, 400), key=lambda r: (r.partition, r.offset))
            found.append([(r.partition, r.offset, r.key, r.value, r.headers) for r in records])
        assert len(found[0]) == 400
        assert found[0] == found[1]


def test_mistakes_are_named(servers: str, filled: str) -> None:
    with Consumer(servers, auto_offset_reset="earliest") as consumer:
        with pytest.raises(ConfigError, match=r"nothing is assigned: call assign\(\) first"):
            consumer.poll(10)
        consumer.assign([(filled + "x", 0)])
        with pytest.raises(KafkaError, match=f"topic '{filled}x' does not exist"):
            consumer.poll(1000)
        consumer.assign([(filled, 9)])
        with pytest.raises(ConfigError, match="there is no partition 9"):
            consumer.poll(1000)
        with pytest.raises(ConfigError, match="is not assigned"):
            consumer.pause([TopicPartition(filled, 0)])
    with pytest.raises(NetworkError, match="closed"):
        consumer.poll(10)


def test_a_topic_that_is_unknown_to_the_cluster_is_not_created(servers: str, admin: Any) -> None:
    with Consumer(servers) as consumer, pytest.raises(KafkaError):
        consumer.end_offsets([TopicPartition("never-made", 0)])
    assert "never-made" not in admin.list_topics()
