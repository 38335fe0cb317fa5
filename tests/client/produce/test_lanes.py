"""Tests of a producer's fast path for simple records, called a lane: results equal the normal path's."""

from __future__ import annotations

import asyncio
import gc
import random
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest

from penstock import Admin, Consumer, Producer, TopicPartition
from penstock.client import AsyncProducer
from penstock.client.cluster.metadata import TopicInfo
from penstock.client.config import ProducerConfig
from penstock.client.produce import accumulator, partitioner
from penstock.client.produce import producer as producers
from penstock.client.produce.delivery import Delivery, DeliveryOutcome
from penstock.client.produce.partitioner import PlainKeyLane, plain_murmur2
from penstock.errors import EncodeError, NetworkError, RequestTimeoutError
from penstock.records import native
from penstock.records.row_format import INT64_MAX, PlainMeter, PlainRowWriter
from penstock.testing import KafkaBroker

HAS_COMPILED = hasattr(native.LIBRARY, "RowWriter")


@pytest.fixture(
    params=[
        "plain",
        pytest.param(
            "compiled",
            marks=pytest.mark.skipif(not HAS_COMPILED, reason="this installation has no compiled kernels"),
        ),
    ]
)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Use pure Python or compiled code to fill batches, by the fixture's parameter; return its name."""
    if request.param == "plain":
        monkeypatch.setattr(accumulator, "RowWriter", PlainRowWriter)
        monkeypatch.setattr(accumulator, "Meter", PlainMeter)
        monkeypatch.setattr(partitioner, "murmur2", plain_murmur2)
        monkeypatch.setattr(producers, "KeyLane", PlainKeyLane)
    return str(request.param)


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with KafkaBroker() as broker:
        yield broker.bootstrap_servers


def records_of(servers: str, topic: str, partitions: int, count: int) -> list[Any]:
    with Consumer(servers) as consumer:
        consumer.assign([TopicPartition(topic, number) for number in range(partitions)])
        consumer.seek_to_beginning()
        found: list[Any] = []
        while len(found) < count:
            records = consumer.poll(5_000)
            assert records, f"{len(found)} of {count} records came"
            found += records
        return found


def short_ways(producer: Any) -> list[bytes]:
    """Make the producer record the values that its fast path takes; return the list of values."""
    taken: list[bytes] = []
    lanes = producer.lanes

    class Noting(dict[str, Any]):
        def get(self, topic: str, default: Any = None) -> Any:
            lane = lanes.get(topic)
            return None if lane is None else Watched(lane)

        def __setitem__(self, topic: str, lane: Any) -> None:
            lanes[topic] = lane

        def pop(self, topic: str, default: Any = None) -> Any:
            return lanes.pop(topic, default)

    class Watched:
        def __init__(self, lane: Any) -> None:
            self._lane = lane

        def note(self, value: bytes, *more: Any) -> Delivery | None:
            delivery: Delivery | None = self._lane.note(value, *more)
            if delivery is not None:
                taken.append(value)
            return delivery

    producer.lanes = Noting()
    return taken


def test_records_of_all_kinds_keep_their_order_and_each_delivery_its_place(servers: str, way: str) -> None:
    topic = f"kinds-{way}"
    with Admin(servers) as admin:
        admin.create_topic(topic, 1)
    with Producer(servers, linger_ms=20, batch_size=2_000) as producer:
        taken = short_ways(producer._producer)
        producer._lanes = producer._producer.lanes
        deliveries = []
        for number in range(400):
            value = b"%d" % number
            more: dict[str, Any] = [{}, {}, {}, {"key": b"k"}, {"headers": [("a", b"b")]}, {"timestamp": 5}][
                number % 6
            ]
            deliveries.append((number, producer.send(topic, value, **more)))
            if number == 200:
                producer.flush()
        producer.flush()
        places = {delivery.result(0).offset: number for number, delivery in deliveries}
        times = {delivery.result(0).offset: delivery.result(0).timestamp for _, delivery in deliveries}
    assert len(taken) > 100, "the short way was not taken"
    found = records_of(servers, topic, 1, 400)
    assert [int(record.value) for record in found] == list(range(400))
    assert places == {number: number for number in range(400)}
    assert times == {record.offset: record.timestamp for record in found}
    assert [record.timestamp for record in found[5::6]] == [5] * 66


def test_the_asyncio_producer_takes_the_short_way_too(servers: str, way: str) -> None:
    topic = f"asyncio-{way}"

    async def run() -> None:
        async with AsyncProducer(servers, linger_ms=20) as producer:
            taken = short_ways(producer)
            deliveries = [await producer.send(topic, b"%d" % number) for number in range(300)]
            await producer.flush()
            assert len(taken) > 200
            for delivery in deliveries:
                assert (await delivery).offset >= 0

    with Admin(servers) as admin:
        admin.create_topic(topic, 3)
    asyncio.run(run())
    found = records_of(servers, topic, 3, 300)
    assert sorted(int(record.value) for record in found) == list(range(300))


def test_many_threads_share_a_lane(servers: str, way: str) -> None:
    topic = f"threads-{way}"
    with Admin(servers) as admin:
        admin.create_topic(topic, 2)
    sent: list[tuple[bytes, Delivery]] = []
    with Producer(servers, linger_ms=1, batch_size=3_000, buffer_memory=100_000) as producer:

        def work(name: int) -> None:
            for number in range(1_000):
                value = b"%d/%d" % (name, number)
                sent.append((value, producer.send(topic, value, key=b"k" if number % 50 == 0 else None)))

        threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        producer.flush()
        places = {(d.partition, d.result(0).offset): value for value, d in sent}
        assert producer._producer._accumulator.memory.used == 0
    found = records_of(servers, topic, 2, 4_000)
    assert {(record.partition, record.offset): record.value for record in found} == places
    assert len(places) == 4_000


def test_partitions_change_after_a_batch_of_bytes(servers: str, way: str) -> None:
    topic = f"sticky-{way}"
    with Admin(servers) as admin:
        admin.create_topic(topic, 2)
    with Producer(servers, linger_ms=1_000, batch_size=1_000) as producer:
        partitions = [producer.send(topic, b"x" * 64).partition for _ in range(40)]
        producer.flush()
    runs = [at for at in range(1, 40) if partitions[at] != partitions[at - 1]]
    assert runs == [10, 20, 30], partitions


def test_the_short_way_refuses_what_the_long_way_does(servers: str, way: str) -> None:
    topic = f"refused-{way}"
    with Admin(servers) as admin:
        admin.create_topic(topic, 1)
    with Producer(servers, linger_ms=60_000, buffer_memory=1_024, max_block_ms=50) as producer:
        producer.send(topic, b"a")
        producer.send(topic, b"b")
        with pytest.raises(EncodeError, match="bytes or None, not str"):
            producer.send(topic, "text")  # type: ignore[arg-type]
        assert producer.send(topic, bytearray(b"c")).partition == 0
        with pytest.raises(Exception, match="topic"):
            producer.send(["refused"], b"a")  # type: ignore[arg-type]
        producer.flush()
    with Producer(servers, linger_ms=60_000, buffer_memory=1_024, acks="all", max_block_ms=50) as producer:
        producer.send(topic, b"a")
        producer._producer._accumulator.memory.add(5_000)
        with pytest.raises(RequestTimeoutError, match="no room"):
            producer.send(topic, b"b")
        producer._producer._accumulator.memory.add(-5_000)
        producer.flush()
    assert [record.value for record in records_of(servers, topic, 1, 4)] == [b"a", b"b", b"c", b"a"]


def test_an_abandoned_batch_takes_no_more(way: str) -> None:
    box = accumulator.Accumulator(
        ProducerConfig.parse({"bootstrap.servers": "x:1"}, {"enable_idempotence": False}), lambda: 0.5
    )
    tp, info = TopicPartition("t", 0), TopicInfo("t", {})
    lost, _ = box.append(tp, (None, b"a", (), 0), 37, lambda: 0.0)
    lane = box.writer(tp)
    box.open_lane(lane, {"t": info}, info, 1_000)
    noted = lane.note(b"b", 0)
    assert box.waiting() == {tp: (2, 74)}
    box.abandon(NetworkError("gone"))
    assert lane.note(b"c", 0) is None
    assert isinstance(lost.exception(0), NetworkError)
    assert isinstance(noted.exception(0), NetworkError)
    assert not box.is_full
    assert box.memory.used == 0
    assert box.writer(tp) is None


def test_what_holds_a_batch_s_writer_holds_no_bytes_once_it_is_sent(servers: str, way: str) -> None:
    topic = f"memory-{way}"
    with Admin(servers) as admin:
        admin.create_topic(topic, 8)
    with Producer(servers) as producer:
        for partition in range(8):
            producer.send(topic, b"x" * 100_000, partition=partition)
        producer.flush()
        writers = producer._producer._topics[topic].writers
        assert len(writers) == 8
        for writer in writers:
            if writer is not None:
                with pytest.raises(ValueError, match="dropped"):
                    writer.body(0)


# --- records with a key ---


class KeyedBatches:
    """Open batches of three partitions with one record each, and the fast path of their topic."""

    def __init__(self, limit: int = 1_000_000, memory: int = 1 << 30) -> None:
        self.meter = accumulator.Meter(memory)
        self.info = TopicInfo("t", {})
        self.topics = {"t": self.info}
        self.writers: list[Any] = [
            accumulator.RowWriter(limit, self.meter, DeliveryOutcome("t", number), Delivery, nullcontext())
            for number in range(3)
        ]
        for writer in self.writers:
            writer.add(None, b"first", (), 1_000, 41)
        self.lane = producers.KeyLane(self.writers, self.topics, "t", self.info, self.meter)

    def long_way(self, key: bytes, value: bytes | None, timestamp: int) -> Delivery | None:
        writer = self.writers[(plain_murmur2(key) & 0x7FFFFFFF) % 3]
        size = 36 + len(key) + len(value or b"")
        put: Delivery | None = writer.put(key, value, (), timestamp, size)
        return put

    def contents(self) -> list[tuple[object, ...]]:
        return [
            (bytes(each.body(0)), each.count, each.size, each.base_timestamp, each.max_timestamp)
            for each in self.writers
        ] + [(self.meter.used,)]


def place_of(delivery: Delivery | None) -> tuple[int, int, int] | None:
    if delivery is None:
        return None
    return delivery.partition, delivery._index, delivery._timestamp


@pytest.mark.parametrize("seed", range(8))
def test_a_keyed_record_is_written_as_the_long_way_writes_it(way: str, seed: int) -> None:
    dice = random.Random(seed)
    short, long = KeyedBatches(9_000), KeyedBatches(9_000)
    taken = 0
    for _ in range(400):
        key = dice.randbytes(dice.choice([0, 1, 2, 3, 4, 16, 63, 64, 200]))
        value = dice.choice([None, b"", dice.randbytes(dice.choice([1, 63, 64, 100, 2_000]))])
        timestamp = dice.choice([1_000, 1_001, 0, -7, 1 << 40, dice.randrange(1 << 62)])
        noted = short.lane.note(key, value, timestamp)
        assert place_of(noted) == place_of(long.long_way(key, value, timestamp))
        taken += noted is not None
    assert 50 < taken < 400, "some fit, and some do not"
    assert short.contents() == long.contents()


def test_the_lane_of_keys_takes_nothing_that_needs_a_decision(way: str) -> None:
    batches = KeyedBatches(limit=1_000)
    lane, before = batches.lane, batches.contents()
    assert lane.note("text", b"x", 0) is None
    assert lane.note(None, b"x", 0) is None
    assert lane.note(bytearray(b"k"), b"x", 0) is None
    assert lane.note(b"k", "text", 0) is None
    assert lane.note(b"k", b"x" * 2_000, 0) is None
    assert lane.note(b"k", b"x", -INT64_MAX) is None, "too far from the first record's time"
    batches.topics["t"] = TopicInfo("t", {})
    assert lane.note(b"k", b"x", 0) is None
    batches.topics["t"] = batches.info
    batches.meter.add(1 << 40)
    assert lane.note(b"k", b"x", 0) is None
    batches.meter.add(-(1 << 40))
    kept = list(batches.writers)
    batches.writers[:] = [None] * 3
    assert lane.note(b"k", b"x", 0) is None
    batches.writers[:] = kept
    assert batches.contents() == before
    assert lane.note(b"k", b"x", 0) is not None
    for writer in kept:
        writer.close()
    assert lane.note(b"k", b"x", 0) is None


def test_records_with_keys_go_by_the_lane_to_the_partition_of_their_key(servers: str, way: str) -> None:
    topic = f"keyed-{way}"
    with Admin(servers) as admin:
        admin.create_topic(topic, 3)
    keys = [b"key-%d" % (number % 37) for number in range(600)]
    noted: list[bytes] = []
    with Producer(servers, linger_ms=20, batch_size=4_000) as made:

        class Watched:
            def __init__(self, lane: Any) -> None:
                self._lane = lane

            def note(self, key: bytes, *more: Any) -> Delivery | None:
                delivery: Delivery | None = self._lane.note(key, *more)
                if delivery is not None:
                    noted.append(key)
                return delivery

        made.send(topic, b"first", key=keys[0])
        lanes = made._producer.key_lanes
        assert type(lanes[topic]) is producers.KeyLane
        lanes[topic] = Watched(lanes[topic])
        deliveries = [made.send(topic, b"%d" % number, key=key) for number, key in enumerate(keys)]
        made.flush()
        places = {(d.partition, d.result(0).offset): number for number, d in enumerate(deliveries)}
    assert len(noted) > 400, "the short way was not taken"
    found = [record for record in records_of(servers, topic, 3, 601) if record.value != b"first"]
    assert {(r.partition, r.offset): int(r.value) for r in found} == places
    for record in found:
        assert record.key == keys[int(record.value)]
        assert record.partition == (plain_murmur2(record.key) & 0x7FFFFFFF) % 3
    for partition in range(3):
        numbers = [int(record.value) for record in found if record.partition == partition]
        assert numbers == sorted(numbers)


def test_the_lane_of_keys_is_of_java_s_partitioner_only(servers: str, way: str) -> None:
    topic = f"crc-{way}"
    with Admin(servers) as admin:
        admin.create_topic(topic, 3)
    with Producer(servers, partitioner="consistent_random", linger_ms=20) as made:
        for number in range(20):
            made.send(topic, b"x", key=b"%d" % number)
        assert not made._producer.key_lanes


def test_a_lane_of_keys_in_a_circle_is_collected(way: str) -> None:
    class Known:
        deleted = 0

        def __del__(self) -> None:
            Known.deleted += 1

    batches = KeyedBatches()
    known: Any = Known()
    batches.topics["known"] = known
    batches.topics["lane"] = producers.KeyLane(batches.writers, batches.topics, "t", known, batches.meter)
    del batches, known
    gc.collect()
    assert Known.deleted == 1
