"""Tests of features that all readers of topics and logs share: several topics, patterns, keys, limits."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock import (
    Admin,
    Broker,
    read_log,
    read_topic,
    read_topic_async,
    scan_log,
    scan_topic,
    scan_topic_async,
    write_topic,
)
from penstock.client.produce.partitioner import PARTITIONERS
from penstock.errors import ConfigError
from penstock.model import COLUMN_NAMES

Reader = Callable[..., pa.Table]

TOPICS = {"orders-eu": 3, "orders-us": 2, "returns": 1}
ROWS = 60


def key_of(number: int) -> bytes | None:
    return None if number % 10 == 9 else b"user-%d" % (number % 10)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def servers(directory: Path) -> Iterator[str]:
    """Start a broker with several topics, whose keys the default partitioner has distributed."""
    with Broker(data_dir=directory) as broker:
        with Admin(broker.bootstrap_servers) as admin:
            for topic, partitions in TOPICS.items():
                admin.create_topic(topic, partitions)
        for topic in TOPICS:
            values = [f"{topic} {number}".encode() for number in range(ROWS)]
            keys = pa.array([key_of(number) for number in range(ROWS)], pa.binary())
            table = pa.table({"key": keys, "value": values})
            write_topic(table, topic, broker.bootstrap_servers)
        yield broker.bootstrap_servers


def taken(scan: Any) -> pa.Table:
    return pa.Table.from_batches(list(scan), scan.schema)


async def collected(scan: Any) -> pa.Table:
    return pa.Table.from_batches([batch async for batch in scan], scan.schema)


READERS: dict[str, Callable[[str, Path], Reader]] = {
    "read_topic": lambda at, _: lambda topic, **more: read_topic(topic, at, **more),
    "scan_topic": lambda at, _: lambda topic, **more: taken(scan_topic(topic, at, **more)),
    "read_topic_async": lambda at, _: lambda topic, **more: asyncio.run(read_topic_async(topic, at, **more)),
    "scan_topic_async": lambda at, _: (
        lambda topic, **more: asyncio.run(collected(scan_topic_async(topic, at, **more)))
    ),
    "read_log": lambda _, path: lambda topic, **more: read_log(path, topic, **more),
    "scan_log": lambda _, path: lambda topic, **more: taken(scan_log(path, topic, **more)),
}
OF_BROKERS = [name for name in READERS if "topic" in name]


@pytest.fixture
def reader(request: pytest.FixtureRequest, servers: str, directory: Path) -> Reader:
    return READERS[request.param](servers, directory)


every_reader = pytest.mark.parametrize("reader", READERS, indirect=True)
readers_of_brokers = pytest.mark.parametrize("reader", OF_BROKERS, indirect=True)


def places(table: pa.Table) -> list[tuple[str, int, int]]:
    columns = (table[name].to_pylist() for name in ("topic", "partition", "offset"))
    return list(zip(*columns, strict=True))


@every_reader
@pytest.mark.parametrize(
    ("given", "topics"),
    [
        ("returns", ["returns"]),
        (["returns", "orders-eu"], ["returns", "orders-eu"]),
        (("orders-us", "orders-us"), ["orders-us"]),
        ("^orders-.*", ["orders-eu", "orders-us"]),
        (re.compile(r"ORDERS-U.", re.IGNORECASE), ["orders-us"]),
        ("^order", []),
        (["^.*"], ["orders-eu", "orders-us", "returns"]),
    ],
    ids=str,
)
def test_names_and_patterns(reader: Reader, given: Any, topics: list[str]) -> None:
    table = reader(given)
    assert table.column_names == list(COLUMN_NAMES)
    assert sorted(set(table["topic"].to_pylist())) == sorted(topics)
    assert table.num_rows == ROWS * len(topics)


@pytest.mark.parametrize("reader", [name for name in READERS if name.startswith("read_")], indirect=True)
def test_tables_are_in_the_order_of_the_topics_that_were_given(reader: Reader) -> None:
    found = places(reader(["returns", "orders-eu"]))
    order = ["returns", "orders-eu"]
    assert found == sorted(found, key=lambda place: (order.index(place[0]), *place[1:]))
    assert places(reader("^.*")) == sorted(places(reader("^.*")))


@every_reader
def test_a_key_has_its_records_and_no_others(reader: Reader) -> None:
    table = reader("^orders.*", key=b"user-3", columns=["value", "offset"])
    assert table.column_names == ["value", "offset"]
    expected = [f"{topic} {n}".encode() for topic in ("orders-eu", "orders-us") for n in range(3, ROWS, 10)]
    assert sorted(table["value"].to_pylist()) == sorted(expected)
    assert reader("orders-eu", key=b"user-3", columns=["key"])["key"].to_pylist() == [b"user-3"] * 6
    assert reader("orders-eu", key=b"nobody").num_rows == 0


@every_reader
def test_a_limit_counts_the_records_that_are_asked_for(reader: Reader) -> None:
    table = reader(["orders-us", "orders-eu"], key=b"user-3", limit=8)
    assert table["topic"].to_pylist() == ["orders-us"] * 6 + ["orders-eu"] * 2
    assert reader(["returns", "orders-us"], limit=ROWS + 1)["topic"].to_pylist()[-1] == "orders-us"
    assert reader("returns", limit=0).num_rows == 0


@every_reader
def test_bounds_and_partitions_are_those_of_each_topic(reader: Reader) -> None:
    table = reader(["orders-eu", "orders-us"], partitions=[1], start=2, end=4)
    assert sorted(places(table)) == [
        (topic, 1, offset) for topic in ("orders-eu", "orders-us") for offset in (2, 3)
    ]
    with pytest.raises(ConfigError, match=r"partition.*2"):
        reader(["orders-eu", "orders-us"], partitions=2)


@readers_of_brokers
@pytest.mark.parametrize("partitioner", ["murmur2_random", PARTITIONERS["murmur2"]])
def test_a_partitioner_finds_the_records_of_a_key(reader: Reader, partitioner: Any) -> None:
    everywhere, there = (reader("orders-eu", key=b"user-3", partitioner=each) for each in (None, partitioner))
    assert there.num_rows == 6
    assert there.equals(everywhere)


@readers_of_brokers
def test_only_the_partition_of_the_key_is_read(reader: Reader) -> None:
    """A key is not found if the given partitioner names another partition."""
    mine = PARTITIONERS["murmur2"](b"user-3", 3)
    assert mine is not None
    assert reader("orders-eu", key=b"user-3", partitioner=lambda key, count: (mine + 1) % count).num_rows == 0
    assert reader("orders-eu", key=b"user-3", partitioner=lambda key, count: None).num_rows == 6
    with pytest.raises(ConfigError, match="partitioner says partition 7; topic 'orders-eu' has 3"):
        reader("orders-eu", key=b"user-3", partitioner=lambda key, count: 7)


@every_reader
@pytest.mark.parametrize(
    ("given", "more", "said"),
    [
        ([], {}, "no topic is named"),
        (b"orders", {}, "b'orders' is no name of a topic"),
        ([1], {}, "1 is no name of a topic"),
        ("^(", {}, r"is no pattern"),
        (["^a", "b"], {}, "one pattern"),
        (re.compile(b"orders"), {}, "is no name of a topic"),
        ("orders-eu", {"key": "user-3"}, "key is 'user-3': the bytes of a key"),
    ],
    ids=str,
)
def test_mistakes_are_told(reader: Reader, given: Any, more: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        reader(given, **more)


@readers_of_brokers
@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"partitioner": "murmur2"}, "give key as well"),
        ({"partitioner": "murmur2", "key": b"k", "partitions": 0}, "leave out partitions"),
        ({"partitioner": "java", "key": b"k"}, "partitioner is 'java'"),
    ],
    ids=str,
)
def test_mistakes_about_partitioners_are_told(reader: Reader, more: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        reader("orders-eu", **more)


@pytest.mark.parametrize("scan", [scan_topic, scan_topic_async])
@pytest.mark.parametrize("more", [{"end": 5}, {"end": "2026-01-31"}], ids=str)
def test_a_scan_that_follows_has_no_end(scan: Any, more: dict[str, Any], servers: str) -> None:
    with pytest.raises(ConfigError, match="has no end"):
        scan("returns", servers, follow=True, **more)


@pytest.mark.parametrize(
    ("given", "more", "said"),
    [
        (["a", "b"], {}, "one topic is read at a time"),
        ("^a", {}, "one topic is read at a time"),
        ("a", {"key": b"k"}, "messages have no keys"),
        ("a", {"follow": True}, "follow is for brokers since Kafka 0.8"),
    ],
    ids=str,
)
def test_what_kafka_0_7_does_not_have(given: Any, more: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        scan_topic(given, "localhost:1", protocol="0.7", **more)
