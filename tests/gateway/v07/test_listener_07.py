"""Tests of Kafka 0.7 clients that use a current cluster through a gateway."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.broker.security.throwaway import Security
from penstock.client import Admin, Consumer, NewTopic, Producer
from penstock.errors import ConfigError, KafkaError, NetworkError
from penstock.gateway import Gateway, Limits
from penstock.gateway.v07.offsets import ReaderPlace, place_at
from penstock.records.compression.codecs import CompressionCodec, compress
from penstock.testing import KafkaBroker, KafkaCluster
from penstock.v07.driver import Driver07
from penstock.v07.message_set import cut, encode_message, encode_set, iter_messages
from penstock.v07.wire import (
    Error,
    FetchPart,
    OffsetsPart,
    ProducePart,
    RequestType,
    decode_multifetch,
    decode_offsets,
)
from v07.raw_client import RawClient

PATIENCE_S = 30.0


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, "too late"
        time.sleep(0.01)


@pytest.fixture(scope="module")
def broker() -> Iterator[KafkaBroker]:
    with KafkaBroker(num_partitions=1) as broker:
        yield broker


@pytest.fixture(scope="module")
def gateway(broker: KafkaBroker) -> Iterator[Gateway]:
    with Gateway(broker.bootstrap_servers, v07_port=0) as gateway:
        yield gateway


@pytest.fixture
def driver(gateway: Gateway) -> Iterator[Driver07]:
    with driver_of(gateway) as driver:
        yield driver


@pytest.fixture
def raw(gateway: Gateway) -> Iterator[RawClient]:
    with raw_of(gateway) as client:
        yield client


def driver_of(gateway: Gateway) -> Driver07:
    assert gateway.v07_port is not None
    return Driver07("127.0.0.1", gateway.v07_port)


def raw_of(gateway: Gateway) -> RawClient:
    return RawClient(SimpleNamespace(host="127.0.0.1", port=gateway.v07_port))  # type: ignore[arg-type]


def create(broker: KafkaBroker, topic: str, partitions: int = 1) -> None:
    with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(topic, partitions)])


def produce(broker: KafkaBroker, topic: str, values: Sequence[bytes | None], **options: Any) -> None:
    with Producer(bootstrap_servers=broker.bootstrap_servers, **options) as producer:
        for value in values:
            producer.send(topic, value, partition=0, key=b"a key", headers=[("h", b"left out")])
        producer.flush()


def records(broker: KafkaBroker, topic: str, count: int) -> list[tuple[int, bytes | None]]:
    """Consume `count` records of a topic; return their partitions and values."""
    found: list[tuple[int, bytes | None]] = []
    end = time.monotonic() + PATIENCE_S
    with Consumer(
        bootstrap_servers=broker.bootstrap_servers, group_id=f"of {topic}", auto_offset_reset="earliest"
    ) as consumer:
        consumer.subscribe([topic])
        while len(found) < count:
            assert time.monotonic() < end, f"{len(found)} of {count} records"
            found += [(record.partition, record.value) for record in consumer.poll(100)]
    return sorted(found, key=lambda each: each[0])


# --- producing -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", [CompressionCodec.NONE, CompressionCodec.GZIP, CompressionCodec.SNAPPY])
def test_message_sets_become_records(
    broker: KafkaBroker, driver: Driver07, codec: CompressionCodec, raw: RawClient
) -> None:
    topic = f"made-by-{codec.name}"
    driver.send(topic, [b"%d" % number for number in range(1000)], partition=0, codec=codec)
    assert records(broker, topic, 1000) == [(0, b"%d" % number) for number in range(1000)]


def test_messages_of_magic_0_and_nested_wrappers_become_records(broker: KafkaBroker, raw: RawClient) -> None:
    nested = encode_set([b"in", b"side"], codec=CompressionCodec.GZIP)
    outer = encode_message(compress(CompressionCodec.SNAPPY, nested), codec=CompressionCodec.SNAPPY)
    data = encode_set([b"old"], magic=0) + outer + encode_message(b"")
    assert raw.ask(RequestType.PRODUCE, ProducePart("mixed", 0, data)) == b""
    assert records(broker, "mixed", 4) == [(0, b"old"), (0, b"in"), (0, b"side"), (0, b"")]


def test_multiproduce_writes_every_part(broker: KafkaBroker, raw: RawClient) -> None:
    create(broker, "two", 2)
    parts = [ProducePart("two", 0, encode_set([b"x"])), ProducePart("two", 1, encode_set([b"y", b"z"]))]
    assert raw.ask(RequestType.MULTIPRODUCE, *parts) == b""
    assert records(broker, "two", 3) == [(0, b"x"), (1, b"y"), (1, b"z")]


def test_partition_minus_1_is_any(broker: KafkaBroker, driver: Driver07) -> None:
    create(broker, "any", 3)
    for number in range(60):
        driver.send("any", [b"%d" % number])
    found = records(broker, "any", 60)
    assert {partition for partition, _ in found} == {0, 1, 2}
    assert {int(value or b"") for _, value in found} == set(range(60))


@pytest.mark.parametrize(
    "part",
    [
        ProducePart("any-other", 7, encode_set([b"x"])),
        ProducePart("any-other", -2, encode_set([b"x"])),
        ProducePart("no/topic", 0, encode_set([b"x"])),
        ProducePart("..", 0, encode_set([b"x"])),
        ProducePart("bad-crc", 0, encode_message(b"x")[:-1] + b"y"),
        ProducePart("bad-magic", 0, bytes.fromhex("0000000702 00 00000000 78")),
    ],
)
def test_what_0_7_refuses_ends_the_connection(raw: RawClient, part: ProducePart) -> None:
    assert raw.ask(RequestType.PRODUCE, part) is None


def test_a_message_that_is_too_large_is_dropped_and_counted(gateway: Gateway, raw: RawClient) -> None:
    before = gateway.counts_07
    assert before is not None
    assert raw.ask(RequestType.PRODUCE, ProducePart("large", 0, encode_set([bytes(1_000_001)]))) == b""
    after = gateway.counts_07
    assert after is not None
    assert (after.dropped, after.produced) == (before.dropped + 1, before.produced)


def test_topics_are_not_created_where_the_cluster_does_not() -> None:
    with (
        KafkaBroker(auto_create_topics_enable=False) as broker,
        Gateway(broker.bootstrap_servers, v07_port=0) as gateway,
        raw_of(gateway) as raw,
    ):
        assert raw.ask(RequestType.PRODUCE, ProducePart("t", 0, encode_set([b"x"]))) is None
        with raw_of(gateway) as other:
            assert other.ask(RequestType.FETCH, FetchPart("t", 0, 0, 100)) == b"\0\0"


def test_a_lost_set_closes_its_connection(broker: KafkaBroker, gateway: Gateway, raw: RawClient) -> None:
    create(broker, "refusing", 1)
    broker.faults.fail("Produce", "INVALID_RECORD", topic="refusing")
    try:
        assert raw.ask(RequestType.PRODUCE, ProducePart("refusing", 0, encode_set([b"x"]))) in (b"", None)
        until(lambda: gateway.counts_07 is not None and gateway.counts_07.lost_sets > 0)
        until(lambda: raw.alive() is None)
    finally:
        broker.faults.clear()


# --- fetching --------------------------------------------------------------------------------------------


def test_values_become_messages_at_multiples_of_the_slot(broker: KafkaBroker, driver: Driver07) -> None:
    create(broker, "read")
    produce(broker, "read", [b"one", None, b"three"])
    assert driver.earliest("read", 0) == 0
    assert driver.latest("read", 0) == 3 * 4096
    found = list(driver.messages("read", 0, 0))
    assert [(m.payload, m.offset, m.next_offset) for m in found] == [
        (b"one", 0, 4096),
        (b"", 4096, 8192),
        (b"three", 8192, 12288),
    ]


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_a_reader_that_comes_back_reads_each_record_once(broker: KafkaBroker, compression: str) -> None:
    """A 0.7 reader stores its offset itself, so it can continue at another connection or gateway."""
    dice = random.Random(7)
    topic = f"once-{compression}"
    create(broker, topic)
    values = [dice.randbytes(dice.choice([0, 10, 100, 5000])) for _ in range(700)]
    produce(broker, topic, values, compression_type=compression, linger_ms=5)
    found: list[bytes] = []
    offset = -1
    while len(found) < len(values):
        with Gateway(broker.bootstrap_servers, v07_port=0) as gateway, driver_of(gateway) as driver:
            if offset < 0:
                offset = driver.earliest(topic, 0)
            for _ in range(3):
                fetched = driver.connection.fetch(FetchPart(topic, 0, offset, 1 << dice.randrange(15, 20)))
                messages = list(iter_messages(fetched.checked(), offset))
                stops = sorted({message.next_offset for message in messages} - {offset})
                if stops:
                    stop = dice.choice(stops)
                    found += [message.payload for message in messages if message.offset < stop]
                    offset = stop
    assert found == values


def test_records_larger_than_slots_are_read_on(broker: KafkaBroker, driver: Driver07) -> None:
    """In the gateway's 0.7 byte offsets, each record takes a slot of a fixed number of bytes.

    A reader that began with small slots keeps them, though every 40th record is larger.
    """
    dice = random.Random(3)
    create(broker, "growing")
    values = [dice.randbytes(300_000 if number % 40 == 0 else 50) for number in range(400)]
    produce(broker, "growing", values)
    found: list[bytes] = []
    offset = 0
    while len(found) < len(values):
        fetched = driver.connection.fetch(FetchPart("growing", 0, offset, 1 << 20))
        messages = list(iter_messages(fetched.checked(), offset))
        assert messages
        found += [message.payload for message in messages]
        offset = messages[-1].next_offset
    assert found == values
    assert place_at(offset) is not None


def test_topics_of_large_records_have_large_slots(broker: KafkaBroker, driver: Driver07) -> None:
    create(broker, "large-records")
    values = [random.Random(4).randbytes(20_000) for _ in range(30)]
    produce(broker, "large-records", values)
    end = driver.latest("large-records", 0)
    assert place_at(end) == ReaderPlace(30, 0, 15)
    assert [
        m.payload for m in driver.messages("large-records", 0, driver.earliest("large-records", 0))
    ] == values


def test_a_reader_whose_slots_are_too_small_is_refused_with_the_offset_to_go_on_at(
    broker: KafkaBroker, raw: RawClient, driver: Driver07, caplog: pytest.LogCaptureFixture
) -> None:
    create(broker, "too-large")
    large = random.Random(5).randbytes(900_000)
    produce(broker, "too-large", [large])
    at = ReaderPlace(0, 4000).code
    assert raw.ask(RequestType.FETCH, FetchPart("too-large", 0, at, 1 << 20)) == b"\xff\xff"
    (line,) = [r.getMessage() for r in caplog.records if "cannot bring a reader" in r.getMessage()]
    larger = ReaderPlace(0, 0, 16).code
    assert f"from {at} to {larger}" in line
    fetched = driver.connection.fetch(FetchPart("too-large", 0, larger, 1 << 20))
    assert [message.payload for message in iter_messages(fetched.checked(), larger)] == [large]
    assert place_at(driver.latest("too-large", 0)) == ReaderPlace(1, 0, 16)


def test_plain_messages_are_for_drivers_that_decompress_nothing(broker: KafkaBroker) -> None:
    create(broker, "plain")
    produce(broker, "plain", [b"%d" % number for number in range(300)])
    with (
        Gateway(broker.bootstrap_servers, v07_port=0, v07_messages="plain") as gateway,
        driver_of(gateway) as driver,
    ):
        data = driver.connection.fetch(FetchPart("plain", 0, 0, 1 << 20)).checked()
        assert {data[start + 4] for start, _ in cut(data)} == {0}
        found = [int(message.payload) for message in driver.messages("plain", 0, 0)]
    assert found == list(range(300))


def test_only_committed_records_are_read(broker: KafkaBroker, driver: Driver07) -> None:
    create(broker, "transactions")
    with Producer(bootstrap_servers=broker.bootstrap_servers, transactional_id="of the gateway") as producer:
        for number in range(6):
            try:
                with producer.transaction():
                    producer.send("transactions", b"%d" % number, partition=0)
                    if number % 2:
                        raise ValueError
            except ValueError:
                pass
    assert [m.payload for m in driver.messages("transactions", 0, 0)] == [b"0", b"2", b"4"]


def test_multifetch_answers_each_part(broker: KafkaBroker, raw: RawClient) -> None:
    create(broker, "parts", 2)
    produce(broker, "parts", [b"x", b"y"])
    parts = [
        FetchPart("parts", 0, 0, 1 << 16),
        FetchPart("parts", 1, 0, 1 << 16),
        FetchPart("parts", 7, 0, 1 << 16),
        FetchPart("unknown-topic", 0, 0, 1 << 16),
        FetchPart("no/topic", 0, 0, 1 << 16),
        FetchPart("parts", 0, 4096, 1 << 16),
        FetchPart("parts", 0, 4096 * 3, 1 << 16),
        FetchPart("parts", 0, 4, 1 << 16),
        FetchPart("parts", 0, -1, 1 << 16),
        FetchPart("parts", 0, 0, -5),
        FetchPart("parts", 0, 0, 2),
    ]
    answer = raw.ask(RequestType.MULTIFETCH, *parts)
    assert answer is not None
    assert answer[:2] == b"\0\0"
    found = decode_multifetch(memoryview(answer)[2:], len(parts))
    assert [error for error, _ in found] == [
        Error.NONE,
        Error.NONE,
        Error.WRONG_PARTITION,
        Error.NONE,
        Error.UNKNOWN,
        Error.NONE,
        Error.OFFSET_OUT_OF_RANGE,
        Error.OFFSET_OUT_OF_RANGE,
        Error.OFFSET_OUT_OF_RANGE,
        Error.INVALID_FETCH_SIZE,
        Error.NONE,
    ]
    sets = [[m.payload for m in iter_messages(data)] for _, data in found[:6]]
    assert sets == [[b"x", b"y"], [], [], [], [], [b"y"]]
    assert bytes(found[-1][1]) == b"\0\0"


def test_a_response_to_many_parts_has_a_limit(broker: KafkaBroker, raw: RawClient) -> None:
    create(broker, "crowd", 40)
    with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for partition in range(40):
            for _ in range(50):
                producer.send("crowd", bytes(3000), partition=partition)
        producer.flush()
    parts = [FetchPart("crowd", partition, 0, 1 << 20) for partition in range(40)]
    answer = raw.ask(RequestType.MULTIFETCH, *parts)
    assert answer is not None
    assert 3 << 20 < len(answer) < 5 << 20
    assert all(len(data) > 4096 for _, data in decode_multifetch(memoryview(answer)[2:], 40))


def test_a_fetch_of_what_retention_has_removed_is_out_of_range(broker: KafkaBroker, driver: Driver07) -> None:
    create(broker, "short")
    produce(broker, "short", [b"%d" % number for number in range(10)])
    with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.delete_records({("short", 0): 4})
    with pytest.raises(KafkaError) as raised:
        driver.connection.fetch(FetchPart("short", 0, 0, 1 << 16)).checked()
    assert raised.value.code == Error.OFFSET_OUT_OF_RANGE
    start = driver.earliest("short", 0)
    assert start == 4 * 4096
    assert [m.payload for m in driver.messages("short", 0, start)] == [b"%d" % n for n in range(4, 10)]


# --- offsets ---------------------------------------------------------------------------------------------


def test_offsets_by_time(broker: KafkaBroker, raw: RawClient) -> None:
    create(broker, "timed")
    with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for number in range(5):
            producer.send("timed", b"%d" % number, partition=0, timestamp=1_700_000_000_000 + 1000 * number)
        producer.flush()

    def ask(time_ms: int, count: int = 10, topic: str = "timed") -> list[int]:
        answer = raw.ask(RequestType.OFFSETS, OffsetsPart(topic, 0, time_ms, count))
        assert answer is not None
        return decode_offsets(memoryview(answer)[2:])

    assert ask(-1) == [5 * 4096, 0]
    assert ask(-1, 1) == [5 * 4096]
    assert ask(-2) == [0]
    assert ask(-1, 0) == []
    assert ask(1_700_000_001_500) == [2 * 4096, 0]
    assert ask(0) == [0]
    assert ask(1_800_000_000_000) == [5 * 4096, 0]
    assert ask(-3) == []
    assert (ask(-1, topic="never-made"), ask(7, topic="never-made")) == ([0], [])
    assert raw.ask(RequestType.OFFSETS, OffsetsPart("timed", 0, -1, -1)) is None


@pytest.mark.parametrize("part", [OffsetsPart("offsets-of", 9, -1, 1), OffsetsPart("no/topic", 0, -1, 1)])
def test_offsets_of_what_cannot_be_end_the_connection(
    broker: KafkaBroker, raw: RawClient, part: OffsetsPart
) -> None:
    if part.topic == "offsets-of":
        create(broker, "offsets-of")
    assert raw.ask(RequestType.OFFSETS, part) is None


# --- a cluster that is away, limits, arguments -----------------------------------------------------------


def test_a_cluster_that_is_away_has_nothing_for_the_moment() -> None:
    with KafkaBroker() as broker:
        create(broker, "there")
        produce(broker, "there", [b"x"])
        servers = broker.bootstrap_servers
        gateway = Gateway(servers, v07_port=0).start()
        with raw_of(gateway) as raw:
            assert raw.ask(RequestType.FETCH, FetchPart("there", 0, 0, 1 << 16)) not in (None, b"\0\0")
    try:
        with raw_of(gateway) as raw:
            assert raw.ask(RequestType.FETCH, FetchPart("there", 0, 4096, 1 << 16)) == b"\0\0"
            assert raw.ask(RequestType.FETCH, FetchPart("elsewhere", 0, 0, 1 << 16)) == b"\0\0"
    finally:
        gateway.close()


def test_hostile_bytes_end_one_connection(gateway: Gateway, raw: RawClient) -> None:
    dice = random.Random(11)
    for _ in range(200):
        with raw_of(gateway) as hostile:
            frame = dice.randbytes(dice.randrange(1, 60))
            hostile.send(len(frame).to_bytes(4, "big") + frame)
            hostile.send(b"\xff\xff\xff\xff")
    assert raw.alive() == b""


def test_connections_have_the_limit_of_the_gateway(broker: KafkaBroker) -> None:
    with (
        Gateway(broker.bootstrap_servers, v07_port=0, limits=Limits(connections_max=1)) as gateway,
        raw_of(gateway) as first,
    ):
        assert first.alive() == b""
        with raw_of(gateway) as second:
            assert second.alive() is None


def test_a_cluster_of_2017_is_written_and_read() -> None:
    with (
        KafkaBroker(as_version="0.10.2", num_partitions=1) as old,
        Gateway(old.bootstrap_servers, v07_port=0) as gateway,
        driver_of(gateway) as driver,
    ):
        assert driver.connection.fetch(FetchPart("not-made-by-asking", 0, 0, 100)).checked() == b""
        driver.send("t", [b"%d" % number for number in range(50)], partition=0)
        until(lambda: driver.latest("t", 0) == 50 * 4096)
        assert [int(m.payload) for m in driver.messages("t", 0, 0)] == list(range(50))
        with Admin(bootstrap_servers=old.bootstrap_servers) as admin:
            assert admin.list_topics() == ["t"]


def test_a_producer_is_not_read_while_the_buffer_is_full(broker: KafkaBroker) -> None:
    """Kafka 0.7 has no acknowledgements, so only a full socket can slow a producer down."""
    message, count = bytes(200_000), 300
    create(broker, "slow")
    with Gateway(broker.bootstrap_servers, v07_port=0) as gateway, driver_of(gateway) as driver:

        def produced() -> int:
            counts = gateway.counts_07
            assert counts is not None
            return counts.produced

        fault = broker.faults.fail("Produce", "NOT_ENOUGH_REPLICAS", topic="slow")

        def send() -> None:
            for _ in range(count):
                driver.send("slow", [message], partition=0)

        thread = threading.Thread(target=send)
        thread.start()
        try:
            until(lambda: produced() * len(message) > 24 << 20)
            time.sleep(0.2)
            assert produced() * len(message) < 40 << 20
        finally:
            fault.stop()
            thread.join(PATIENCE_S)
        until(lambda: produced() == count)
        until(lambda: driver.latest("slow", 0) > 0)


def test_clients_of_0_7_have_the_account_of_the_gateway() -> None:
    security = Security("SASL_PLAINTEXT")
    with (
        KafkaBroker(security=security) as broker,
        Gateway(broker.bootstrap_servers, v07_port=0, config=security.client_settings()) as gateway,
        driver_of(gateway) as driver,
    ):
        driver.send("t", [b"x"], partition=0)
        until(lambda: driver.latest("t", 0) > 0)
        assert [message.payload for message in driver.messages("t", 0, 0)] == [b"x"]


def test_idle_connections_end(broker: KafkaBroker) -> None:
    with Gateway(broker.bootstrap_servers, v07_port=0, limits=Limits(idle_ms=100)) as gateway:
        with raw_of(gateway) as silent:
            assert silent.answer() is None
        with raw_of(gateway) as half:
            half.send(b"\0\0\0\x10half")
            assert half.answer() is None


def test_leaders_die_while_0_7_writes_and_reads() -> None:
    """No record is lost, duplicated or reordered, though 0.7 has no acknowledgements."""
    count = 400
    with (
        KafkaCluster(3, num_partitions=1, default_replication_factor=3, min_insync_replicas=2) as cluster,
        Gateway(cluster.bootstrap_servers, v07_port=0) as gateway,
        driver_of(gateway) as writer,
        driver_of(gateway) as reader,
    ):
        found: list[int] = []

        def read_until(total: int) -> None:
            end = time.monotonic() + PATIENCE_S
            while len(found) < total:
                assert time.monotonic() < end, f"{len(found)} of {total}"
                offset = len(found) * 4096
                data = reader.connection.fetch(FetchPart("t", 0, offset, 1 << 20)).checked()
                found.extend(int(message.payload) for message in iter_messages(data, offset))

        for number in range(count):
            writer.send("t", [b"%d" % number], partition=0)
            if number in (100, 250):
                read_until(number - 50)
                leader = cluster.partition("t", 0).leader
                cluster.kill(leader)
            if number in (200, 350):
                cluster.restart(leader)
        read_until(count)
    assert found == list(range(count))


@pytest.mark.parametrize(
    "arguments",
    [
        {"v07_port": -1},
        {"v07_port": "9092"},
        {"v07_zookeeper": "zk:2181"},
        {"v07_port": 0, "v07_slot_bytes": 1},
        {"v07_port": 0, "v07_slot_bytes": 1 << 20},
        {"v07_port": 0, "v07_broker_id": -1},
        {"v07_port": 0, "v07_zookeeper": ""},
        {"v07_port": 0, "v07_messages": "gzip"},
    ],
)
def test_arguments_that_do_not_fit(arguments: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="v07_"):
        Gateway("127.0.0.1:1", **arguments)  # type: ignore[arg-type]


def test_a_port_that_is_taken(gateway: Gateway) -> None:
    with pytest.raises(NetworkError, match=r"cannot listen for Kafka 0\.7"):
        Gateway("127.0.0.1:1", v07_port=gateway.v07_port).start()
