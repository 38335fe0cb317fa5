"""Tests of copying topics from Kafka 0.7: every message once and in order, even after interruptions."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock import Admin, Broker, Consumer, Producer, TopicPartition, read_topic
from penstock.errors import ConfigError, NetworkError, TopicRecreatedError
from penstock.records.compression.codecs import CompressionCodec
from penstock.tables import mirror as mirror_module
from penstock.tables.mirror import OFFSET_HEADER, PLACE_HEADER, Mirror
from penstock.v07.driver import Driver07
from penstock.v07.server import Broker07


@pytest.fixture
def old(tmp_path: Path) -> Iterator[Broker07]:
    with Broker07(tmp_path / "old", settings={"num.partitions": 2, "log.file.size": 1_000}) as running:
        yield running


@pytest.fixture(scope="module")
def new() -> Iterator[Broker]:
    with Broker() as running:
        yield running


def fill(old: Broker07, count: int, first: int = 0) -> None:
    with Driver07(old.host, old.port) as driver:
        for number in range(first, first + count):
            group = [b"%d-%d" % (number, place) for place in range(3)]
            driver.send(
                "t",
                group,
                partition=number % 2,
                codec=CompressionCodec.GZIP if number % 3 else CompressionCodec.NONE,
            )
        assert driver.latest("t", 0)


def expected(count: int, partition: int) -> list[bytes]:
    return [b"%d-%d" % (number, place) for number in range(partition, count, 2) for place in range(3)]


def source(old: Broker07) -> str:
    return f"{old.host}:{old.port}"


def test_everything_once_and_in_order_whenever_it_is_interrupted(old: Broker07, new: Broker) -> None:
    dice = random.Random(5)
    fill(old, 40)
    for _ in range(12):
        # As a killed process leaves it: some chunks acknowledged, and some records of the next one.
        with Mirror("t", source(old), new.bootstrap_servers) as mirror:
            mirror._source._drivers[0]._fetch_bytes = 150
            for _ in zip(range(dice.randrange(1, 5)), mirror.run(), strict=False):
                pass
    fill(old, 10, first=40)
    with Mirror("t", source(old), new.bootstrap_servers, compression="zstd") as mirror:
        progress = list(mirror.run())
    assert {one.partition for one in progress} == {0, 1}
    assert all(one.offset <= one.end for one in progress)
    for partition in (0, 1):
        table = read_topic("t", new.bootstrap_servers, partitions=[partition])
        assert table["value"].to_pylist() == expected(50, partition)
    with Mirror("t", source(old), new.bootstrap_servers) as mirror:
        assert list(mirror.run()) == []


def test_a_copy_cut_inside_a_wrapper_goes_on_inside_it(old: Broker07, new: Broker) -> None:
    fill(old, 4)
    with Admin(new.bootstrap_servers) as admin:
        admin.create_topic("cut", 2)
    with Producer(new.bootstrap_servers) as producer:
        headers = [(OFFSET_HEADER, b"0"), (PLACE_HEADER, b"0")]
        producer.send("cut", b"1-0", partition=1, headers=headers).result(10)
    with Mirror("t", source(old), new.bootstrap_servers, target_topic="cut") as mirror:
        list(mirror.run())
    for partition in (0, 1):
        table = read_topic("cut", new.bootstrap_servers, partitions=[partition])
        assert table["value"].to_pylist() == expected(4, partition)


def test_following_copies_what_comes(old: Broker07, new: Broker) -> None:
    fill(old, 2)
    waits: list[float] = []

    class Enough(Exception):
        pass

    def wait(seconds: float) -> None:
        waits.append(seconds)
        polls, more = divmod(len(waits), mirror_module.SIGNS)
        if polls == 3:
            raise Enough
        if not more:
            fill(old, 2, first=2 * polls)

    with (
        Mirror("t", source(old), new.bootstrap_servers, target_topic="followed") as mirror,
        pytest.raises(Enough),
    ):
        list(mirror.run(follow=True, wait=wait))
    table = read_topic("followed", new.bootstrap_servers, partitions=[0])
    assert table["value"].to_pylist() == expected(6, 0)


def test_a_target_that_is_created_anew_ends_a_copy(old: Broker07, new: Broker) -> None:
    fill(old, 2)

    def recreate(_: float) -> None:
        with Admin(new.bootstrap_servers) as admin:
            admin.delete_topics(["anew"])
            admin.create_topic("anew", partitions=2)

    with (
        Mirror("t", source(old), new.bootstrap_servers, target_topic="anew") as mirror,
        pytest.raises(TopicRecreatedError, match="start the copy again"),
    ):
        list(mirror.run(follow=True, wait=recreate))
    with Mirror("t", source(old), new.bootstrap_servers, target_topic="anew") as mirror:
        list(mirror.run())
    table = read_topic("anew", new.bootstrap_servers, partitions=[0])
    assert table["value"].to_pylist() == expected(2, 0)


def test_records_say_where_they_came_from(old: Broker07, new: Broker) -> None:
    fill(old, 4)
    with Mirror("t", source(old), new.bootstrap_servers, target_topic="told") as mirror:
        list(mirror.run())
    places = read_topic("t", source(old), protocol="0.7", partitions=[1])["offset"].to_pylist()
    where = TopicPartition("told", 1)
    with Consumer(new.bootstrap_servers) as consumer:
        consumer.assign([where])
        consumer.seek(where, 0)
        records = []
        while len(records) < len(places):
            records += consumer.poll(timeout_ms=1_000)
    assert [int(dict(record.headers)[OFFSET_HEADER] or b"") for record in records] == places


def test_mistakes_are_told(old: Broker07, new: Broker) -> None:
    fill(old, 2)
    with Producer(new.bootstrap_servers) as producer:
        producer.send("narrow", b"x", partition=0).result(10)
    refused = pytest.raises(ConfigError, match="narrow has 1 partitions, the source 2")
    with Mirror("t", source(old), new.bootstrap_servers, target_topic="narrow") as mirror, refused:
        list(mirror.run())
    with Admin(new.bootstrap_servers) as admin:
        admin.create_topic("shared", 2)
    with Producer(new.bootstrap_servers) as producer:
        producer.send("shared", b"x", partition=1).result(10)
    refused = pytest.raises(ConfigError, match="last record of shared-1 is no copy")
    with Mirror("t", source(old), new.bootstrap_servers, target_topic="shared") as mirror, refused:
        list(mirror.run())
    with Mirror("t", "127.0.0.1:1", new.bootstrap_servers) as mirror, pytest.raises(NetworkError):
        list(mirror.run())
