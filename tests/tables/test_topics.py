"""Tests of writing and reading whole topics: records, offset and time bounds, and columns."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from for_each import for_each
from penstock import Producer, TopicPartition, read_topic, scan_topic, write_topic
from penstock.client import OffsetRange, fetch_ranges, list_offsets
from penstock.client.produce.partitioner import PARTITIONERS
from penstock.errors import ConfigError, EncodeError, KafkaError, NetworkError
from penstock.model import COLUMN_NAMES, EARLIEST, LATEST

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
NewTopic = Callable[..., str]

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    """Return (partition, key, value, headers, timestamp in ms) of each row of a table."""
    return [
        (
            row["partition"],
            row["key"],
            row["value"],
            [(h["key"], h["value"]) for h in row["headers"]],
            round(row["timestamp"].timestamp() * 1000),
        )
        for row in table.to_pylist()
    ]


@pytest.mark.parametrize("codec", CODECS)
def test_a_table_comes_back(servers: str, new_topic: NewTopic, codec: str) -> None:
    topic = new_topic(3)
    table = pa.table(
        {
            "key": pa.array([b"a", b"b", None, b"", b"a"], pa.binary()),
            "value": pa.array([b"1", None, b"x" * 5000, b"", "ü".encode()], pa.binary()),
            "headers": pa.array([[], None, [("h", b"1"), ("h", None)], [("ü", b"")], []], HEADERS),
            "timestamp": pa.array([0, 1, 2, 3, 4], pa.timestamp("ms", tz="UTC")),
            "partition": pa.array([0, 1, 2, 1, None], pa.int32()),
        }
    )
    summary = write_topic(table, topic, servers, compression=codec)
    keyed = PARTITIONERS["murmur2"](b"a", 3)
    assert (summary.topic, summary.rows) == (topic, 5)
    assert sum(end - start for start, end in summary.offsets.values()) == 5
    back = read_topic(topic, servers)
    assert back.schema.names == list(COLUMN_NAMES)
    expected = [
        (0, b"a", b"1", [], 0),
        (1, b"b", None, [], 1),
        (2, None, b"x" * 5000, [("h", b"1"), ("h", None)], 2),
        (1, b"", b"", [("ü", b"")], 3),
        (keyed, b"a", "ü".encode(), [], 4),
    ]
    assert sorted(map(repr, rows_of(back))) == sorted(map(repr, expected))


BYTES = st.one_of(st.none(), st.binary(max_size=30))
ROWS = st.lists(
    st.tuples(
        BYTES,
        BYTES,
        st.lists(st.tuples(st.text(max_size=5), BYTES), max_size=3),
        st.integers(0, 2**40),
        st.integers(0, 2),
    ),
    max_size=40,
)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=ROWS,
    codec=st.sampled_from(CODECS),
    batch_size=st.sampled_from([1, 200, 1_000_000]),
    as_rows=st.booleans(),
    fetch_bytes=st.sampled_from([1024, 4 << 20]),
    cut=st.tuples(st.integers(0, 40), st.integers(0, 40)),
)
def test_any_mix_reads_back_what_was_written(
    servers: str,
    new_topic: NewTopic,
    rows: list[Any],
    codec: str,
    batch_size: int,
    as_rows: bool,
    fetch_bytes: int,
    cut: tuple[int, int],
) -> None:
    """Records are written as rows or columns, with any codec and batch size.

    All of them are read, or a part of each partition.
    """
    topic = new_topic(3)
    config = {"compression.type": codec, "batch.size": batch_size}
    if as_rows:
        with Producer(servers, config) as producer:
            for key, value, headers, timestamp, partition in rows:
                producer.send(
                    topic, value, key=key, headers=headers, timestamp=timestamp, partition=partition
                )
    elif rows:
        keys, values, headers, timestamps, partitions = zip(*rows, strict=True)
        table = pa.table(
            {
                "key": pa.array(keys, pa.binary()),
                "value": pa.array(values, pa.binary()),
                "headers": pa.array(headers, HEADERS),
                "timestamp": pa.array(timestamps, pa.int64()),
                "partition": pa.array(partitions, pa.int32()),
            }
        )
        write_topic(table, topic, servers, config=config)
    written = [
        [(p, key, value, headers, timestamp) for key, value, headers, timestamp, p in rows if p == partition]
        for partition in range(3)
    ]
    start, end = cut
    back = read_topic(
        topic, servers, start=start, end={1: end}, config={"fetch.max.bytes": fetch_bytes, "client.id": "x"}
    )
    expected = written[0][start:] + written[1][start:end] + written[2][start:]
    assert rows_of(back) == expected
    if rows:
        ranges = [OffsetRange(topic, p, 0, len(part)) for p, part in enumerate(written)]
        found = pa.Table.from_batches(
            list(fetch_ranges(servers, ranges, fetch_bytes=fetch_bytes, batch_bytes=300))
        )
        everything = [row for part in written for row in part]
        assert rows_of(found.sort_by([("partition", "ascending"), ("offset", "ascending")])) == everything


def fill(servers: str, topic: str, count: int, partition: int = 0, **options: object) -> None:
    """Write `count` records that are half a second apart, with their numbers as values."""
    table = pa.table(
        {
            "value": [b"%d" % n for n in range(count)],
            "timestamp": pa.array([500 * n for n in range(count)], pa.timestamp("ms")),
            "partition": pa.array([partition] * count, pa.int32()),
        }
    )
    write_topic(table, topic, servers, config=options)


def at(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


@for_each(
    [
        ("earliest", "latest", range(10)),
        (EARLIEST, LATEST, range(10)),
        ("latest", "latest", range(0)),
        (3, 7, range(3, 7)),
        (0, 99, range(10)),
        (7, 3, range(0)),
        (50, "latest", range(0)),
        (at(1200), at(3000), range(3, 6)),
        (at(1000), "latest", range(2, 10)),
        (at(99_000), "latest", range(0)),
        ("earliest", at(99_000), range(10)),
        ({0: 4}, {0: at(2500)}, range(4, 5)),
        ({0: "latest"}, "latest", range(0)),
    ]
)
def test_bounds(start: Any, end: Any, expected: range, servers: str, new_topic: NewTopic) -> None:
    topic = new_topic()
    fill(servers, topic, 10, **{"batch.size": 150})
    found = read_topic(topic, servers, start=start, end=end, columns=["offset"])
    assert found["offset"].to_pylist() == list(expected)


@pytest.mark.parametrize("bound", ["soon", -5, 1.5, True, None])
def test_no_bounds(servers: str, new_topic: NewTopic, bound: Any) -> None:
    topic = new_topic()
    with pytest.raises(ConfigError, match="no position in a topic"):
        read_topic(topic, servers, start=bound)


def test_columns_in_any_order_and_number(servers: str, new_topic: NewTopic) -> None:
    topic = new_topic()
    fill(servers, topic, 3)
    assert read_topic(topic, servers, columns=["offset", "value"]).to_pylist()[1] == {
        "offset": 1,
        "value": b"1",
    }
    assert read_topic(topic, servers, columns=["topic"])["topic"].to_pylist() == [topic] * 3
    assert read_topic(topic, servers, columns=[]).num_columns == 0
    with pytest.raises(ConfigError, match="no column 'vale'; it has key, value"):
        read_topic(topic, servers, columns=["vale"])
    with pytest.raises(ConfigError, match="no column"):
        scan_topic(topic, servers, columns=["vale"])


def test_partitions_may_be_chosen(servers: str, new_topic: NewTopic) -> None:
    topic = new_topic(3)
    for partition in range(3):
        fill(servers, topic, 4, partition)
    assert set(read_topic(topic, servers, partitions=[2, 0])["partition"].to_pylist()) == {0, 2}
    with pytest.raises(ConfigError, match="there is no partition 3"):
        read_topic(topic, servers, partitions=[3])


def test_an_empty_topic_is_an_empty_table(servers: str, new_topic: NewTopic) -> None:
    table = read_topic(new_topic(2), servers, columns=["value", "timestamp"])
    assert table.num_rows == 0
    assert table.schema.names == ["value", "timestamp"]


def test_scanning_gives_the_same_in_bounded_pieces(servers: str, new_topic: NewTopic) -> None:
    topic = new_topic(2)
    for partition in range(2):
        fill(servers, topic, 5000, partition, **{"batch.size": 2000})
    batches = list(scan_topic(topic, servers, batch_bytes=20_000))
    assert len(batches) > 4
    assert max(batch.nbytes for batch in batches) < 100_000
    for partition in range(2):
        offsets = [
            o for b in batches if b["partition"][0].as_py() == partition for o in b["offset"].to_pylist()
        ]
        assert offsets == list(range(5000))
    whole = pa.Table.from_batches(batches).sort_by([("partition", "ascending"), ("offset", "ascending")])
    assert whole.equals(read_topic(topic, servers).combine_chunks())


def test_a_scan_may_be_left_early(servers: str, new_topic: NewTopic) -> None:
    topic = new_topic()
    fill(servers, topic, 3000, **{"batch.size": 1000})
    scan = scan_topic(topic, servers, batch_bytes=1000)
    assert next(iter(scan)).num_rows > 0
    scan.close()  # type: ignore[attr-defined]


def test_the_end_is_fixed_when_the_reading_begins(servers: str, new_topic: NewTopic) -> None:
    topic = new_topic()
    fill(servers, topic, 100)
    scan = iter(scan_topic(topic, servers))
    first = next(scan)
    fill(servers, topic, 100)
    assert first.num_rows + sum(batch.num_rows for batch in scan) == 100


def test_a_log_that_was_cut_is_read_from_where_it_begins(
    servers: str, new_topic: NewTopic, admin: Any
) -> None:
    import asyncio

    from penstock.client import AsyncClient
    from penstock.client.config import ClientConfig
    from penstock.protocol.messages.delete_records_request import (
        DeleteRecordsPartition,
        DeleteRecordsRequest,
        DeleteRecordsTopic,
    )

    topic = new_topic()
    fill(servers, topic, 10)

    async def cut() -> None:
        async with AsyncClient(ClientConfig.parse({"bootstrap.servers": servers}, {})) as client:
            await client.bootstrap()
            where = DeleteRecordsPartition(partition_index=0, offset=4)
            request = DeleteRecordsRequest(
                topics=[DeleteRecordsTopic(name=topic, partitions=[where])], timeout_ms=1000
            )
            await client.request(request)

    asyncio.run(cut())
    assert read_topic(topic, servers, start=0, columns=["offset"])["offset"].to_pylist() == list(range(4, 10))
    with pytest.raises(KafkaError, match=r"records 2 to 7 .* the log begins at offset 4"):
        list(fetch_ranges(servers, [(topic, 0, 2, 8)]))


# -- writing


def test_unkeyed_rows_are_spread_and_keyed_ones_go_where_java_sends_them(
    servers: str, new_topic: NewTopic
) -> None:
    topic = new_topic(4)
    keys = [None if n % 2 else b"k%d" % n for n in range(20_000)]
    summary = write_topic(
        pa.table({"key": pa.array(keys, pa.binary()), "value": [b"x"] * 20_000}), topic, servers
    )
    assert set(summary.offsets) == {0, 1, 2, 3}
    for row in read_topic(topic, servers, columns=["key", "partition"]).slice(0, 3000).to_pylist():
        if row["key"] is not None:
            assert row["partition"] == PARTITIONERS["murmur2"](row["key"], 4)


@pytest.mark.parametrize("name", ["consistent", "fnv1a_random", "own"])
def test_other_partitioners_decide_for_columns_too(servers: str, new_topic: NewTopic, name: str) -> None:
    topic = new_topic(5)
    own = lambda key, count: None if key is None else key[0] % count  # noqa: E731
    keys = [b"%d" % n for n in range(50)] + [None]
    table = pa.table({"key": pa.array(keys, pa.binary()), "value": [b"x"] * 51})
    write_topic(table, topic, servers, config={"partitioner": own if name == "own" else name})
    decide = own if name == "own" else PARTITIONERS[name]
    rows = read_topic(topic, servers, columns=["key", "partition"]).to_pylist()
    assert len(rows) == 51
    for row in rows:
        assert decide(row["key"], 5) in (None, row["partition"])


def test_an_own_partitioner_that_errs_is_named(servers: str, new_topic: NewTopic) -> None:
    table = pa.table({"key": [b"a"], "value": [b"x"]})
    with pytest.raises(ConfigError, match="row 0 names partition 9; the topic has 2"):
        write_topic(table, new_topic(2), servers, config={"partitioner": lambda key, count: 9})


def test_order_within_a_partition_is_the_tables(servers: str, new_topic: NewTopic) -> None:
    topic = new_topic(3)
    numbers = [struct.pack(">i", n) for n in range(50_000)]
    keys = [b"%d" % (n % 7) for n in range(50_000)]
    write_topic(pa.table({"key": keys, "value": numbers}), topic, servers, config={"batch.size": 20_000})
    back = read_topic(topic, servers, columns=["key", "value"])
    for key in {b"%d" % n for n in range(7)}:
        values = [
            v for k, v in zip(back["key"].to_pylist(), back["value"].to_pylist(), strict=True) if k == key
        ]
        assert values == sorted(values)


def test_columns_may_have_other_names_and_types(servers: str, new_topic: NewTopic) -> None:
    topic = new_topic()
    table = pa.table({"user": ["ada", "bob"], "payload": pa.array(["1", None], pa.large_string())})
    write_topic(table, topic, servers, fields={"key": "user", "value": "payload"})
    assert read_topic(topic, servers, columns=["key", "value"]).to_pylist() == [
        {"key": b"ada", "value": b"1"},
        {"key": b"bob", "value": None},
    ]


def test_batches_of_any_size_may_come_one_after_the_other(servers: str, new_topic: NewTopic) -> None:
    topic = new_topic()
    pieces = (pa.record_batch({"value": [b"%d" % n]}) for n in range(100))
    assert write_topic(pieces, topic, servers).rows == 100
    assert read_topic(topic, servers)["value"].to_pylist() == [b"%d" % n for n in range(100)]
    tables = [
        pa.table({"value": [b"a"]}),
        pa.table({"key": ["k"], "value": [b"b"]}),
        pa.table({"value": [b"c"]}),
    ]
    assert write_topic(tables, topic, servers).rows == 3
    assert write_topic([], topic, servers) == (topic, 0, 0, 0, {})
    assert write_topic(pa.table({"value": pa.array([], pa.binary())}), topic, servers).rows == 0


@pytest.mark.parametrize(
    ("table", "options", "error", "words"),
    [
        (pa.table({"v": [b"x"]}), {}, EncodeError, "neither a column 'key' nor 'value' among v"),
        (pa.table({"value": [b"x"]}), {"fields": {"key": "k"}}, EncodeError, "no column 'k' for the key"),
        (pa.table({"value": [b"x"]}), {"fields": {"vale": "value"}}, EncodeError, "no field 'vale'"),
        (pa.table({"value": [1]}), {}, EncodeError, "column 'value' is int64"),
        (
            pa.table({"value": [b"x"], "partition": [7]}),
            {},
            ConfigError,
            "row 0 names partition 7; the topic has 1",
        ),
        (pa.table({"value": [b"x"], "partition": ["a"]}), {}, EncodeError, "column 'partition' is string"),
        (pa.table({"value": [b"x"]}), {"compression": "lzma"}, ConfigError, "compression_type"),
        (pa.table({"value": [b"x"]}), {"config": {"lingre.ms": 1}}, ConfigError, "did you mean 'linger.ms'"),
        ({"value": [b"x"]}, {}, EncodeError, "a table is needed: of pyarrow, pandas, Polars"),
    ],
)
def test_mistakes_are_named(
    servers: str, new_topic: NewTopic, table: Any, options: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        write_topic(table, new_topic(), servers, **options)


def test_unknown_topics_and_unreachable_brokers_are_named(servers: str, new_topic: NewTopic) -> None:
    topic = new_topic()
    with pytest.raises(KafkaError, match=f"topic '{topic}x' does not exist; did you mean '{topic}'"):
        read_topic(topic + "x", servers)
    with pytest.raises(NetworkError, match=r"no broker answered at 127\.0\.0\.1:1: connection refused"):
        read_topic(topic, "127.0.0.1:1")


def test_offsets_can_be_listed_without_anything_heavy(servers: str, new_topic: NewTopic) -> None:
    topic = new_topic(2)
    fill(servers, topic, 10, 1)
    where = TopicPartition(topic, 1)
    assert list_offsets(servers, {where: LATEST})[where].offset == 10  # type: ignore[union-attr]
    assert list_offsets(servers, {where: 1200})[where] == (3, 1500)
    assert list_offsets(servers, {where: 99_000})[where] is None
    assert list_offsets(servers, {TopicPartition(topic, 0): EARLIEST}) == {TopicPartition(topic, 0): (0, -1)}


@pytest.mark.parametrize("cuts", [(0, 99, 100), (0, 1, 2, 100), (0, 50, 51, 99, 100)])
def test_several_ranges_of_one_partition_down_to_a_single_record(
    servers: str, new_topic: Callable[..., str], cuts: tuple[int, ...]
) -> None:
    topic = new_topic()
    fill(servers, topic, 100)
    ranges = [OffsetRange(topic, 0, start, end) for start, end in itertools.pairwise(cuts)]
    for fetch_bytes in (1, 200, 1 << 20):
        found = pa.Table.from_batches(
            list(fetch_ranges(servers, ranges, ("offset",), fetch_bytes=fetch_bytes))
        )
        assert found["offset"].to_pylist() == list(range(100))
