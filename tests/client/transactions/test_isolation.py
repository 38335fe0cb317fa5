"""Tests of `read_committed` in every way to read: aborted and open records are not returned or decoded."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from for_each import for_each
from penstock import (
    Admin,
    Broker,
    Consumer,
    TopicPartition,
    read_log,
    read_topic,
    scan_log,
    scan_topic,
)
from penstock.client import AsyncConsumer, AsyncProducer
from penstock.records import decode

RECORDS = 200
KEPT = [b"%d kept" % number for number in range(3 * RECORDS)]
PARTS = [TopicPartition("t", 0), TopicPartition("t", 1)]


@pytest.fixture(scope="module", params=["none", "zstd"])
def place(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Path]]:
    """Run a broker on disk with interleaved transactions of two producers.

    Some are committed, some aborted, and one is open.
    """
    directory = tmp_path_factory.mktemp("data")
    with Broker(directory) as broker:
        servers = broker.bootstrap_servers
        with Admin(servers) as admin:
            admin.create_topic("t", partitions=2)
            asyncio.run(write(servers, request.param))
            # A commit is answered before its markers are written.
            while admin.describe_transactions(["one"])[0].state != "CompleteCommit":
                time.sleep(0.01)
        yield servers, directory


async def write(servers: str, codec: str) -> None:
    options = {"compression_type": codec, "batch_size": 500}
    async with (
        AsyncProducer(servers, transactional_id="one", **options) as one,
        AsyncProducer(servers, transactional_id="two", **options) as two,
    ):
        kept = iter(KEPT)
        for _ in range(3):
            await one.begin_transaction()
            await two.begin_transaction()
            for number in range(RECORDS):
                await one.send("t", next(kept), partition=number % 2)
                await two.send("t", b"aborted", partition=number % 2)
                if number % 20 == 0:
                    await one.flush()
                    await two.flush()
            await one.commit_transaction()
            await two.flush()
            await two.abort_transaction()
        await two.begin_transaction()
        for number in range(RECORDS):
            await two.send("t", b"open", partition=number % 2)
        await two.prepare_transaction()


def by_table(servers: str, directory: Path, isolation: str) -> list[bytes]:
    table = read_topic("t", servers, columns=["value"], isolation=isolation)
    return [bytes(value) for value in table["value"].to_pylist()]


def by_scan(servers: str, directory: Path, isolation: str) -> list[bytes]:
    batches = scan_topic("t", servers, columns=["value"], isolation=isolation)
    return [value for batch in batches for value in batch.column("value").to_pylist()]


def by_log(servers: str, directory: Path, isolation: str) -> list[bytes]:
    return read_log(directory, "t", columns=["value"], isolation=isolation)["value"].to_pylist()


def by_log_scan(servers: str, directory: Path, isolation: str) -> list[bytes]:
    batches = scan_log(directory, "t", columns=["value"], isolation=isolation)
    return [value for batch in batches for value in batch.column("value").to_pylist()]


def by_poll(servers: str, directory: Path, isolation: str) -> list[bytes]:
    with Consumer(servers, isolation_level=isolation) as consumer:
        consumer.assign(PARTS)
        consumer.seek_to_beginning()
        ends = consumer.end_offsets(PARTS)
        values: list[bytes] = []
        while any(consumer.position(tp) < ends[tp] for tp in PARTS):
            values += [record.value or b"" for record in consumer.poll(timeout_ms=100)]
        return values


def by_arrow_polls(servers: str, directory: Path, isolation: str) -> list[bytes]:
    with Consumer(servers, isolation_level=isolation) as consumer:
        consumer.assign(PARTS)
        consumer.seek_to_beginning()
        ends = consumer.end_offsets(PARTS)
        values: list[bytes] = []
        while any(consumer.position(tp) < ends[tp] for tp in PARTS):
            batch = consumer.poll_arrow(timeout_ms=100, columns=["value"])
            values += batch.column("value").to_pylist() if batch is not None else []
        return values


def by_asyncio(servers: str, directory: Path, isolation: str) -> list[bytes]:
    async def read() -> list[bytes]:
        async with AsyncConsumer(servers, isolation_level=isolation) as consumer:
            consumer.assign(PARTS)
            consumer.seek_to_beginning()
            ends = await consumer.end_offsets(PARTS)
            values: list[bytes] = []
            while True:
                left = [tp for tp in PARTS if await consumer.position(tp) < ends[tp]]
                if not left:
                    return values
                values += [record.value or b"" for record in await consumer.poll(timeout_ms=100)]

    return asyncio.run(read())


WAYS = [by_table, by_scan, by_log, by_log_scan, by_poll, by_arrow_polls, by_asyncio]


@for_each(WAYS)
def test_what_is_aborted_or_open_is_not_read(
    way: Callable[[str, Path, str], list[bytes]], place: tuple[str, Path]
) -> None:
    assert sorted(way(*place, "read_committed")) == sorted(KEPT)


@for_each(WAYS)
def test_all_is_read_where_nothing_else_is_said(
    way: Callable[[str, Path, str], list[bytes]], place: tuple[str, Path]
) -> None:
    values = way(*place, "read_uncommitted")
    assert values.count(b"aborted") == 3 * RECORDS
    assert values.count(b"open") == RECORDS
    assert len(values) == 7 * RECORDS


@pytest.mark.parametrize("way", [by_table, by_scan, by_log, by_log_scan, by_arrow_polls])
def test_columns_of_aborted_records_are_never_built(
    place: tuple[str, Path], way: Callable[[str, Path, str], list[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches of aborted records are left out before they are decompressed and decoded."""
    scanned: list[int] = []
    scan = decode._Decoder._scan

    def counted(self: Any, data: Any, table: Any, lines: int, records: int, rest: float) -> None:
        scanned.append(records)
        scan(self, data, table, lines, records, rest)

    monkeypatch.setattr(decode._Decoder, "_scan", counted)
    way(*place, "read_committed")
    assert sum(scanned) == len(KEPT)


def test_defaults_are_those_of_kafka(place: tuple[str, Path]) -> None:
    servers, directory = place
    assert len(read_topic("t", servers, columns=["value"])) == 7 * RECORDS
    assert len(read_log(directory, "t", columns=["value"])) == 7 * RECORDS
