"""Tests of the Kafka 0.7 client with Penstock's 0.7 broker: segments, sizes and closed connections.

The broker is also restarted.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.common.reused_buffers import ReusedMemory
from penstock.errors import ConfigError, DecodeError, KafkaError, NetworkError
from penstock.records.compression.codecs import CompressionCodec
from penstock.v07.connection import REUSED_BYTES_MIN
from penstock.v07.driver import BrokerAddress, Driver07, parse_brokers
from penstock.v07.message_set import encode_set
from penstock.v07.server import Broker07
from penstock.v07.wire import ProducePart


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker07]:
    settings = {"num.partitions": 3, "log.file.size": 2_000}
    with Broker07(tmp_path / "logs", settings=settings) as running:
        yield running


def driver_of(broker: Broker07, fetch_bytes: int = 1 << 20) -> Driver07:
    return Driver07(broker.host, broker.port, timeout_s=10, fetch_bytes=fetch_bytes)


@pytest.mark.parametrize("fetch_bytes", [1, 7, 100, 5_000, 1 << 20])
def test_everything_once_and_in_order_whatever_the_fetch_size(broker: Broker07, fetch_bytes: int) -> None:
    sent: list[bytes] = []
    with driver_of(broker, fetch_bytes) as driver:
        for number, codec in enumerate(
            [CompressionCodec.NONE, CompressionCodec.GZIP, CompressionCodec.SNAPPY] * 20
        ):
            group = [b"%d-%d" % (number, place) * (1 + number * place) for place in range(4)]
            driver.send("t", group, partition=1, codec=codec)
            sent += group
        found = list(driver.messages("t", 1, driver.earliest("t", 1)))
        assert [message.payload for message in found] == sent
        scanned = driver.scan("t", 1, 0, names=("value", "offset"))
        assert [row for batch in scanned for row in batch.to_pylist()] == [
            {"value": message.payload, "offset": message.offset} for message in found
        ]
        middle = found[100].offset
        again = list(driver.messages("t", 1, middle))
        assert again == [message for message in found if message.offset >= middle]
        assert found[-1].next_offset == driver.latest("t", 1)


def test_what_is_there(broker: Broker07) -> None:
    with driver_of(broker) as driver:
        assert driver.partition_count("t") == 3
        assert (driver.earliest("t", 0), driver.latest("t", 0)) == (0, 0)
        assert list(driver.messages("t", 0, 0)) == []
        driver.send("t", [b"x"], partition=0)
        assert driver.latest("t", 0) == 11
        assert driver.offset_before("t", 0, 1) == 0
        assert driver.offset_before("t", 0, int(time.time() * 1000) + 60_000) == 11
        with pytest.raises(KafkaError, match="t-0 at byte 12: the offset is outside the log"):
            list(driver.messages("t", 0, 12, 50))
        with pytest.raises(KafkaError, match="no such partition"):
            list(driver.messages("t", 3, 0, 50))
        with pytest.raises(KafkaError, match="illegal topic name"):
            driver.partition_count("a/b")
        with pytest.raises(NetworkError, match="has closed the connection"):
            driver.latest("t", 3)
        with pytest.raises(DecodeError, match="inside a message at byte 0"):
            list(driver.messages("t", 0, 0, 5))


def test_a_broker_that_hangs_up_is_noticed_by_the_next_send(broker: Broker07) -> None:
    with driver_of(broker) as driver:
        driver.send("t", [b"first"], partition=0)
        driver.connection.produce([ProducePart("t", 7, encode_set([b"nowhere"]))])
        with pytest.raises(NetworkError, match="may not have been stored"):
            send_until_it_fails(driver)
        driver.send("t", [b"second"], partition=0)
        assert [m.payload for m in driver.messages("t", 0, 0)] == [b"first", b"second"]


def send_until_it_fails(driver: Driver07) -> None:
    for _ in range(1_000):
        driver.send("t", [b"?"], partition=2)
        time.sleep(0.01)


def test_reading_survives_a_restart(broker: Broker07) -> None:
    with driver_of(broker) as driver:
        driver.send("t", [b"kept"], partition=0)
        assert driver.latest("t", 0) == 14
        broker.close()
        broker.start()
        assert [m.payload for m in driver.messages("t", 0, 0)] == [b"kept"]
        broker.close()
        with pytest.raises(NetworkError, match=f"broker 127.0.0.1:{broker.port}: connection refused"):
            driver.latest("t", 0)


def test_broker_lists() -> None:
    assert parse_brokers("h:9092") == [BrokerAddress(0, "h", 9092)]
    assert parse_brokers("1:a:9092, 2:b:9093") == [BrokerAddress(1, "a", 9092), BrokerAddress(2, "b", 9093)]
    for wrong in ("", "h", "h:x", "h:70000", "a:9092,b:9092"):
        with pytest.raises(ConfigError):
            parse_brokers(wrong)


def test_memory_is_used_again_only_when_nobody_looks_at_it() -> None:
    buffers = ReusedMemory(REUSED_BYTES_MIN)
    size = 2 * REUSED_BYTES_MIN
    first = buffers.take(size)
    first[:] = b"a" * size
    second = buffers.take(size)
    second[:] = b"b" * size
    assert bytes(first) == b"a" * size
    held = first[10:20]
    first.release()
    third = buffers.take(size)
    assert third.obj is not held.obj
    before = held.obj
    held.release()
    again = buffers.take(size - 5)
    assert again.obj is before
    assert len(again) == size - 5
    assert len({id(view.obj) for view in (second, third, again)}) == 3
