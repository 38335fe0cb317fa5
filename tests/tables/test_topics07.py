"""Tests of reading Kafka 0.7 topics and log directories as tables, with the calls for newer versions."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from penstock import read_log, read_topic, scan_topic
from penstock.errors import ConfigError, CorruptRecordError, NetworkError
from penstock.records.compression.codecs import CompressionCodec
from penstock.tables.topics07 import PARTITIONS_PER_BROKER
from penstock.v07.driver import Driver07
from penstock.v07.server import Broker07


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker07]:
    """Start a 0.7 broker with 40 messages in each of three partitions, over several segments.

    Some messages are compressed. A second topic has one message.
    """
    directory = tmp_path_factory.mktemp("old") / "logs"
    with Broker07(directory, settings={"num.partitions": 3, "log.file.size": 500}) as running:
        with Driver07(running.host, running.port) as driver:
            for number in range(40):
                for partition in range(3):
                    codec = CompressionCodec.GZIP if number % 7 == partition else CompressionCodec.NONE
                    driver.send("t", [b"%d-%d" % (partition, number)], partition=partition, codec=codec)
            driver.send("other", [b"x"], partition=1)
            assert driver.latest("other", 1) == 11
        yield running


def address(broker: Broker07) -> str:
    return f"{broker.host}:{broker.port}"


EVERYTHING = [b"%d-%d" % (partition, number) for partition in range(3) for number in range(40)]


def test_a_topic_is_a_table(broker: Broker07) -> None:
    table = read_topic("t", address(broker), protocol="0.7")
    assert table["value"].to_pylist() == EVERYTHING
    assert table["partition"].to_pylist() == [0] * 40 + [1] * 40 + [2] * 40
    assert set(table["timestampType"].to_pylist()) == {-1}
    batches = scan_topic("t", address(broker), protocol="0.7", columns=["value"], partitions=[1])
    assert [value for batch in batches for value in batch["value"].to_pylist()] == EVERYTHING[40:80]


def test_bounds_are_bytes(broker: Broker07) -> None:
    offsets = read_topic("t", address(broker), protocol="0.7", partitions=[1])["offset"].to_pylist()
    part = read_topic(
        "t", address(broker), protocol="0.7", partitions=[1], start=offsets[10], end=offsets[20]
    )
    assert part["value"].to_pylist() == EVERYTHING[50:60]
    part = read_topic("t", address(broker), protocol="0.7", start={2: "latest", 0: offsets[-1] + 99})
    assert part["value"].to_pylist() == EVERYTHING[40:80]
    future = datetime(2100, 1, 1, tzinfo=UTC)
    assert read_topic("t", address(broker), protocol="0.7", start=future).num_rows == 0
    past = datetime(2000, 1, 1, tzinfo=UTC)
    assert read_topic("t", address(broker), protocol="0.7", start=past).num_rows == 120


def test_several_brokers_are_one_set_of_partitions(broker: Broker07, tmp_path: Path) -> None:
    with Broker07(tmp_path / "second") as second:
        with Driver07(second.host, second.port) as driver:
            driver.send("t", [b"elsewhere"], partition=0)
            assert driver.latest("t", 0) == 19
        servers = f"0:{address(broker)},5:{address(second)}"
        table = read_topic("t", servers, protocol="0.7")
        assert table["value"].to_pylist() == [*EVERYTHING, b"elsewhere"]
        assert table["partition"].to_pylist()[-1] == 5 * PARTITIONS_PER_BROKER


def test_a_directory_is_a_table_without_a_broker(broker: Broker07) -> None:
    table = read_log(broker.data_dir, "t")
    assert table["value"].to_pylist() == EVERYTHING
    assert table.equals(read_topic("t", address(broker), protocol="0.7"))
    one = read_log(Path(broker.data_dir) / "t-2", columns=["value", "topic", "partition"])
    assert one["value"].to_pylist() == EVERYTHING[80:]
    assert set(zip(one["topic"].to_pylist(), one["partition"].to_pylist(), strict=True)) == {("t", 2)}
    offsets = read_log(broker.data_dir, "t", partitions=1)["offset"].to_pylist()
    part = read_log(broker.data_dir, "t", partitions=1, start={1: offsets[7]}, end=offsets[30])
    assert part["value"].to_pylist() == EVERYTHING[47:70]
    assert read_log(broker.data_dir, "t", start="latest").num_rows == 0


def test_a_closed_segment_that_does_not_end_at_a_message_is_an_error(broker: Broker07) -> None:
    """A flipped bit in a message length would otherwise end a segment early and silently."""
    first, *_ = sorted((Path(broker.data_dir) / "t-1").glob("*.kafka"))
    whole = first.read_bytes()
    for damaged in (b"\x7f" + whole[1:], whole[:-1], whole + b"\0", whole[:-2] + b"\xff\xff\xff"):
        first.write_bytes(damaged)
        with pytest.raises(CorruptRecordError):
            read_log(broker.data_dir, "t", partitions=1)
    first.write_bytes(whole)
    assert read_log(broker.data_dir, "t", partitions=1)["value"].to_pylist() == EVERYTHING[40:80]


def test_a_partial_message_at_the_end_is_left_out(tmp_path: Path) -> None:
    directory = tmp_path / "t-0"
    with Broker07(tmp_path) as broker, Driver07(broker.host, broker.port) as driver:
        driver.send("t", [b"a", b"b"], partition=0)
        assert driver.latest("t", 0) == 22
    (segment,) = directory.glob("*.kafka")
    segment.write_bytes(segment.read_bytes()[:-3])
    assert read_log(tmp_path)["value"].to_pylist() == [b"a"]


def test_mistakes_are_told(broker: Broker07) -> None:
    there = address(broker)
    for arguments, message in [
        ({"protocol": "0.6"}, "it is one of kafka, 0.7"),
        ({"protocol": "0.7", "partitions": [3]}, "no partition 3; it has 0, 1, 2"),
        ({"protocol": "0.7", "start": "first"}, "start is 'first', which is no position in a topic"),
        ({"protocol": "0.7", "columns": ["body"]}, "has no column 'body'"),
    ]:
        with pytest.raises(ConfigError, match=message):
            read_topic("t", there, **arguments)  # type: ignore[arg-type]
    with pytest.raises(NetworkError):
        read_topic("t", "127.0.0.1:1", protocol="0.7")
    with pytest.raises(ConfigError, match="several topics, name one: other, t"):
        read_log(broker.data_dir)
    with pytest.raises(ConfigError, match="holds no topic x; it holds other, t"):
        read_log(broker.data_dir, "x")
    with pytest.raises(ConfigError, match="no partition 9"):
        read_log(broker.data_dir, "t", partitions=9)
    with pytest.raises(ConfigError, match="messages have no times"):
        read_log(broker.data_dir, "t", start=datetime(2000, 1, 1, tzinfo=UTC))
