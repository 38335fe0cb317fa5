"""Tests of reading topics as Arrow streams and writing other libraries' Arrow streams: no record is lost."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

from for_each import for_each
from penstock import (
    Admin,
    Broker,
    Producer,
    TopicPartition,
    read_log,
    read_topic,
    read_topic_async,
    scan_log,
    scan_topic,
    scan_topic_async,
    write_topic,
    write_topic_async,
)
from penstock.client import AsyncAdmin
from penstock.client.fetch import ranges
from penstock.errors import ConfigError, EncodeError, KafkaError
from penstock.model import COLUMN_NAMES
from penstock.tables import reading

NewTopic = Callable[..., str]
ROWS = 100_000


@pytest.fixture(scope="module")
def filled(servers: str, new_topic: NewTopic) -> str:
    """Write `ROWS` records to a topic of three partitions: values are numbers, keys repeat after seven."""
    topic = new_topic(3)
    numbers = range(ROWS)
    table = pa.table(
        {
            "key": [b"k%d" % (number % 7) for number in numbers],
            "value": [b"%d" % number for number in numbers],
            "partition": pa.array([number % 3 for number in numbers], pa.int32()),
            "timestamp": pa.array([1_000 * number for number in numbers], pa.timestamp("ms", tz="UTC")),
        }
    )
    write_topic(table, topic, servers)
    return topic


# --- out


def test_duckdb_queries_a_scan_by_its_name(servers: str, filled: str) -> None:
    scan = scan_topic(filled, servers)  # noqa: F841  # DuckDB looks for variables by name
    query = 'SELECT count(*), sum(value::VARCHAR::BIGINT), min("offset") FROM scan'
    expected = [(ROWS, ROWS * (ROWS - 1) // 2, 0)]
    assert duckdb.sql(query).fetchall() == expected
    assert duckdb.sql(query).fetchall() == expected, "a second query reads the topic again"
    few = scan_topic(filled, servers, columns=["value"], limit=5)  # noqa: F841
    assert duckdb.sql("SELECT count(*) FROM few").fetchall() == [(5,)]


def test_pyarrow_and_pandas_take_a_scan(servers: str, filled: str) -> None:
    scan = scan_topic(filled, servers, columns=["offset", "value"])
    assert scan.schema.names == ["offset", "value"]
    assert pa.schema(scan) == scan.schema
    table = pa.table(scan)
    assert table.schema == scan.schema
    assert sorted(table["value"].to_pylist(), key=int) == [b"%d" % number for number in range(ROWS)]
    assert scan.read_all().num_rows == scan.to_reader().read_all().num_rows == ROWS
    assert pd.DataFrame.from_arrow(scan).shape == (ROWS, 2)


def test_a_scan_is_still_an_iterator(servers: str, filled: str) -> None:
    scan = scan_topic(filled, servers, columns=["value"])
    first = next(scan)
    assert isinstance(first, pa.RecordBatch)
    assert first.num_rows + sum(batch.num_rows for batch in scan) == ROWS
    assert next(scan, None) is None
    assert pa.table(scan).num_rows == ROWS, "the stream is apart from the iteration"
    left_early = scan_topic(filled, servers)
    next(left_early)
    left_early.close()
    assert list(left_early) == []
    assert repr(scan) == f"<ArrowScan of topic {filled}: value>"


def test_a_scan_of_nothing_has_its_columns(servers: str, new_topic: NewTopic) -> None:
    scan = scan_topic(new_topic(), servers)
    assert pa.table(scan).schema.names == list(COLUMN_NAMES)
    assert duckdb.sql("SELECT count(*) FROM scan").fetchall() == [(0,)]


def test_an_error_of_a_scan_reaches_the_library_with_its_text(servers: str) -> None:
    scan = scan_topic("not-there", servers)
    with pytest.raises(duckdb.Error, match="topic 'not-there' does not exist"):
        duckdb.sql("FROM scan").fetchall()
    with pytest.raises(pa.ArrowException, match="topic 'not-there' does not exist"):
        pa.table(scan)
    with pytest.raises(KafkaError, match="topic 'not-there' does not exist"):
        next(scan)


def test_a_log_is_a_stream_as_well(tmp_path: Path) -> None:
    with Broker(data_dir=tmp_path) as broker:
        write_topic(pa.table({"value": [b"%d" % n for n in range(100)]}), "t", broker.bootstrap_servers)
    scan = scan_log(tmp_path, "t")
    assert duckdb.sql("SELECT count(*) FROM scan").fetchall() == [(100,)]
    assert sum(batch.num_rows for batch in scan) == 100
    assert pa.table(scan).num_rows == 100
    assert read_log(tmp_path, "t", last=3)["value"].to_pylist() == [b"97", b"98", b"99"]
    assert read_log(tmp_path, "t", last=5, limit=2)["value"].to_pylist() == [b"95", b"96"]
    assert read_log(tmp_path, "t", last="1h").num_rows == 100
    assert read_log(tmp_path, "t", end="1h").num_rows == 0
    assert read_log(tmp_path, "t", start={0: "2020-01-01"}, end={0: 7}).num_rows == 7
    with pytest.raises(ConfigError, match="without a time zone"):
        scan_log(tmp_path, "t", start=datetime(2026, 1, 1))


# --- in


def from_pandas() -> pd.DataFrame:
    numbers = range(ROWS)
    return pd.DataFrame({"key": [f"k{n % 7}" for n in numbers], "value": [str(n) for n in numbers]})


SOURCES: dict[str, Callable[[], Any]] = {
    "pandas": from_pandas,
    "pandas with an index that counts for nothing": lambda: from_pandas()[::-1],
    "duckdb": lambda: duckdb.sql(f"SELECT 'k' || n % 7 AS key, n::VARCHAR AS value FROM range({ROWS}) t(n)"),
    "a reader": lambda: pa.RecordBatchReader.from_stream(from_pandas()),
    "a batch with the array interface": lambda: OnlyArray(
        pa.record_batch({"value": [str(n) for n in range(ROWS)]})
    ),
    "a frame with the interchange protocol": lambda: OnlyInterchange(
        pa.table({"value": [str(n) for n in range(ROWS)]})
    ),
    "frames one after the other": lambda: (from_pandas()[n : n + 9_000] for n in range(0, ROWS, 9_000)),
}


class OnlyArray:
    def __init__(self, batch: pa.RecordBatch) -> None:
        self.__arrow_c_array__ = batch.__arrow_c_array__


class OnlyInterchange:
    def __init__(self, table: pa.Table) -> None:
        self.__dataframe__ = table.__dataframe__


@pytest.mark.parametrize("name", SOURCES)
def test_what_other_libraries_have_is_written(servers: str, new_topic: NewTopic, name: str) -> None:
    topic = new_topic(2)
    assert write_topic(SOURCES[name](), topic, servers).rows == ROWS
    written = read_topic(topic, servers, columns=["value"])["value"].to_pylist()
    assert sorted(written, key=int) == [b"%d" % number for number in range(ROWS)]


def test_a_scan_can_be_written(servers: str, new_topic: NewTopic, filled: str) -> None:
    copy = new_topic(3)
    assert write_topic(scan_topic(filled, servers), copy, servers).rows == ROWS
    columns = ["key", "value", "partition", "timestamp"]
    original, copied = (read_topic(topic, servers, columns=columns) for topic in (filled, copy))
    assert original.equals(copied)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (pa.table({"value": ["x"], "amount": [1]}), "column 'amount' would be lost"),
        (pd.DataFrame({"value": ["x"], "amount": [1]}), "column 'amount' would be lost"),
        (
            pd.DataFrame({"value": ["x"]}, index=pd.Index([3], name="id")),
            "column 'id' would be lost",
        ),
        (None, "there is no data to write"),
        ("rows.parquet", "'rows.parquet' cannot be written to a topic: a table is needed"),
        ([{"value": "x"}], r"\{'value': 'x'\} cannot be written to a topic: .*from_pylist"),
        (pa.array([1, 2]), "Int64Array has no columns to write"),
        (7, "7 cannot be written to a topic"),
    ],
    ids=str,
)
def test_what_cannot_be_written_is_named(servers: str, new_topic: NewTopic, data: Any, words: str) -> None:
    topic = new_topic()
    with pytest.raises(EncodeError, match=words):
        write_topic(data, topic, servers)
    assert read_topic(topic, servers).num_rows == 0


def test_dictionaries_of_views_are_written(servers: str, new_topic: NewTopic) -> None:
    """Polars exports its categorical columns as such dictionaries."""
    topic = new_topic()
    values = pa.array(["ada", "bob"], pa.string_view())
    column = pa.DictionaryArray.from_arrays(pa.array([0, None, 1, 0], pa.uint32()), values)
    write_topic(
        pa.table({"value": column, "key": pa.array(["a", "b", None, "d"], pa.string_view())}), topic, servers
    )
    found = read_topic(topic, servers, columns=["key", "value"]).to_pylist()
    assert sorted((row["key"] or b"", row["value"]) for row in found) == [
        (b"", b"bob"),
        (b"a", b"ada"),
        (b"b", None),
        (b"d", b"ada"),
    ]


# --- bounds


def values_of(table: pa.Table) -> list[int]:
    return [int(value) for value in table["value"].to_pylist()]


def test_limits_and_last(servers: str, filled: str) -> None:
    assert values_of(read_topic(filled, servers, limit=4)) == [0, 3, 6, 9]
    rows = len(range(0, ROWS, 3))
    past = read_topic(filled, servers, limit=rows + 2)
    assert values_of(past)[-2:] == [1, 4], "partition after partition"
    assert read_topic(filled, servers, limit=0).num_rows == 0
    assert read_topic(filled, servers, limit=10 * ROWS).num_rows == ROWS
    assert values_of(read_topic(filled, servers, last=2)) == [99_996, 99_999, 99_994, 99_997, 99_995, 99_998]
    assert values_of(read_topic(filled, servers, last=2, end=5, partitions=1)) == [10, 13]
    assert read_topic(filled, servers, last=10 * ROWS).num_rows == ROWS


def test_times_and_durations_are_bounds(servers: str, filled: str, new_topic: NewTopic) -> None:
    for start in (
        "1970-01-02T00:00:00Z",
        date(1970, 1, 2),
        datetime(1970, 1, 2, tzinfo=UTC),
        "1970-01-02 00:00",
    ):
        found = read_topic(filled, servers, start=start, end="1970-01-02T00:00:03Z")
        assert sorted(values_of(found)) == [86_400, 86_401, 86_402]
    assert (
        read_topic(filled, servers, start={0: "1970-01-02"}, end={1: 0, 2: 0}, limit=1)["value"][0].as_py()
        == b"86400"
    )
    topic = new_topic()
    with Producer(servers) as producer:
        producer.send(topic, b"old", timestamp=datetime.now(UTC) - timedelta(hours=3))
        producer.send(topic, b"new")
    for recent in ("1h", timedelta(hours=1), "60 minutes ago", "PT1H"):
        assert read_topic(topic, servers, start=recent)["value"].to_pylist() == [b"new"]
        assert read_topic(topic, servers, end=recent)["value"].to_pylist() == [b"old"]
    assert read_topic(topic, servers, last="2h")["value"].to_pylist() == [b"new"]
    assert read_topic(topic, servers, last=timedelta(days=1)).num_rows == 2


@for_each(
    [
        ({"start": "soon"}, "start is 'soon', which is no position in a topic"),
        ({"end": "1x"}, "'x' is no unit of time"),
        ({"end": b"earliest"}, "end is b'earliest', which is no position"),
        ({"start": [1]}, r"start is \[1\], which is no position"),
        ({"start": True}, "start is True, which is no position"),
        ({"start": {0: 1.5}}, "start is 1.5, which is no position"),
        ({"start": {7: 1}}, "start names partition 7, which is not among those read"),
        ({"start": {"0": 1}}, "a partition of start is '0': a whole number is needed"),
        ({"last": "many"}, "last is 'many': a number of records or a duration"),
        ({"last": -1}, "last is -1: a number of records or a duration"),
        ({"last": 5, "start": 3}, "give one of them"),
        ({"limit": "5"}, "limit is '5': a number of records is needed"),
        ({"limit": -5}, "limit is -5: a number of records is needed"),
        (
            {"isolation": "serializable"},
            "isolation is 'serializable': one of read_uncommitted, read_committed is needed",
        ),
        ({"partitions": "0"}, "partitions is '0': numbers are needed"),
        ({"config": "client.id=x"}, "config is str: a mapping of options is needed"),
        ({"batch_bytes": "1"}, "batch_bytes is '1': a whole number is needed"),
    ]
)
def test_bounds_that_make_no_sense_are_named(
    options: dict[str, Any], words: str, servers: str, filled: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        list(scan_topic(filled, servers, **options))


# --- retention meanwhile


@pytest.fixture
def busy(servers: str, new_topic: NewTopic, monkeypatch: pytest.MonkeyPatch) -> str:
    """Write 300 records of 1 KB, each in its own batch, so that reading takes many fetches."""
    monkeypatch.setattr(reading, "FETCH_BYTES", 4_096)
    topic = new_topic()
    with Producer(servers, batch_size=1) as producer:
        for number in range(300):
            producer.send(topic, b"%01000d" % number)
    return topic


def remove_head(admin: Admin, topic: str, below: int) -> None:
    admin.delete_records({TopicPartition(topic, 0): below})


@pytest.mark.parametrize("start", ["earliest", "1h", {}], ids=str)
def test_a_scan_goes_on_where_retention_took_the_head(
    servers: str, admin: Admin, busy: str, caplog: pytest.LogCaptureFixture, start: Any
) -> None:
    scan = scan_topic(busy, servers, start=start, columns=["offset"], config={"fetch.min.bytes": 1})
    seen = next(scan)["offset"].to_pylist()
    remove_head(admin, busy, 200)
    with caplog.at_level(logging.WARNING, "penstock.client"):
        seen += [offset for batch in scan for offset in batch["offset"].to_pylist()]
    gone = sorted(set(range(300)) - set(seen))
    assert seen == sorted(seen)
    assert gone
    assert gone == list(range(gone[0], 200))
    [warning] = [record.getMessage() for record in caplog.records if "were removed" in record.getMessage()]
    assert warning == (
        f"offsets {gone[0]} to 199 of {busy}-0 were removed while it was read, by retention or "
        "DeleteRecords: reading goes on at offset 200"
    )


def test_a_scan_that_loses_everything_ends(servers: str, admin: Admin, busy: str) -> None:
    scan = scan_topic(busy, servers, columns=["offset"])
    next(scan)
    remove_head(admin, busy, -1)
    seen = [offset for batch in scan for offset in batch["offset"].to_pylist()]
    assert len(seen) < 200


@pytest.mark.parametrize("start", [0, {0: 0}], ids=str)
def test_offsets_that_were_named_are_missed(servers: str, admin: Admin, busy: str, start: Any) -> None:
    scan = scan_topic(busy, servers, start=start)
    next(scan)
    remove_head(admin, busy, 200)
    with pytest.raises(KafkaError, match="were asked for, but are not there"):
        list(scan)


def test_the_async_scan_goes_on_as_well(servers: str, busy: str) -> None:
    async def play() -> list[int]:
        scan = scan_topic_async(busy, servers, columns=["offset"])
        seen = (await anext(scan))["offset"].to_pylist()
        async with AsyncAdmin(servers) as admin:
            await admin.delete_records({TopicPartition(busy, 0): 200})
        return seen + [offset async for batch in scan for offset in batch["offset"].to_pylist()]

    seen = asyncio.run(play())
    assert seen[-1] == 299
    assert len(seen) < 300


# --- asyncio


def test_the_asyncio_twins(servers: str, new_topic: NewTopic, filled: str) -> None:
    copy, again = new_topic(3), new_topic(3)

    async def pieces() -> AsyncIterator[pd.DataFrame]:
        yield from_pandas()[:10]
        yield from_pandas()[10:20]

    async def play() -> None:
        scan = scan_topic_async(filled, servers, batch_bytes=1 << 16)
        assert scan.schema.names == list(COLUMN_NAMES)
        assert (await write_topic_async(scan, copy, servers, compression="lz4")).rows == ROWS
        assert (await write_topic_async(from_pandas(), copy, servers)).rows == ROWS
        assert (await write_topic_async(pieces(), again, servers)).rows == 20
        assert (await read_topic_async(filled, servers)).equals(read_topic(filled, servers))
        assert values_of(await read_topic_async(filled, servers, limit=4)) == [0, 3, 6, 9]
        assert (await read_topic_async(filled, servers, last=2, partitions=[2])).num_rows == 2
        early = scan_topic_async(filled, servers)
        await anext(early)
        await early.aclose()
        with pytest.raises(ConfigError, match="limit is -1"):
            scan_topic_async(filled, servers, limit=-1)
        with pytest.raises(KafkaError, match="does not exist"):
            await read_topic_async("not-there", servers)

    asyncio.run(play())
    assert read_topic(copy, servers).num_rows == 2 * ROWS
    assert ranges.FETCH_BYTES == 4 << 20


def test_an_async_write_is_one_transaction(servers: str, new_topic: NewTopic) -> None:
    topic = new_topic()
    config = {"transactional.id": f"writer-of-{topic}"}

    def broken() -> Iterator[pa.Table]:
        yield pa.table({"value": ["a"]})
        raise ValueError("no more")

    async def play() -> None:
        with pytest.raises(ValueError, match="no more"):
            await write_topic_async(broken(), topic, servers, config=config)
        await write_topic_async(pa.table({"value": ["b"]}), topic, servers, config=config)

    asyncio.run(play())
    found = read_topic(topic, servers, isolation="read_committed")
    assert found["value"].to_pylist() == [b"b"]
