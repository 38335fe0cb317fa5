"""Tests that a query fetches only what its answer needs; the bytes that the broker sends are counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from for_each import for_each
from penstock import Admin, Broker, Producer, sql
from penstock.queries import topic_dataset
from penstock.queries.dataset import RecordDataset
from query_wire import Wire

MINUTES, PARTITIONS, A_MINUTE = 10_000, 2, 20
START = datetime(2026, 1, 1, tzinfo=UTC)
ROWS = MINUTES * A_MINUTE


@pytest.fixture(scope="module")
def wire() -> Wire:
    return Wire()


@pytest.fixture(scope="module")
def servers(wire: Wire) -> Iterator[str]:
    """Start a broker with one long topic: twenty records a minute, with rising timestamps."""
    with Broker(log_retention_ms=-1, interceptors=[wire.intercept]) as broker:
        servers = broker.bootstrap_servers
        with Admin(servers) as admin, Producer(servers) as producer:
            admin.create_topic("long", PARTITIONS)
            step = 500 * A_MINUTE
            for first in range(0, ROWS, step):
                numbers = range(first, first + step)
                times = [START + timedelta(minutes=number // A_MINUTE) for number in numbers]
                table = pa.table(
                    {
                        "key": [b"k%d" % (number % 5) for number in numbers],
                        "value": [b"%0100d" % number for number in numbers],
                        "timestamp": pa.array(times, pa.timestamp("ms", tz="UTC")),
                        "partition": pa.array([number % PARTITIONS for number in numbers], pa.int32()),
                    }
                )
                for start in range(0, step, 200):  # batches as producers make them
                    producer.send_arrow("long", table.slice(start, 200))
                    producer.flush()
        yield servers


@pytest.fixture(scope="module")
def whole_bytes(servers: str, wire: Wire) -> int:
    """Read the whole topic, and return how many bytes of records the broker sent."""
    wire.reset()
    assert topic_dataset("long", servers).count_rows() == ROWS
    assert wire.size_bytes > ROWS * 100
    return wire.size_bytes


def answer(t: RecordDataset, query: str) -> Any:
    """Return the rows of a query that DuckDB runs on the data set `t`."""
    return duckdb.sql(query).fetchall() if t is not None else None


def ask(wire: Wire, work: Callable[[], Any]) -> Any:
    wire.reset()
    return work()


def test_the_last_ten_minutes_are_a_hundredth_of_the_bytes(
    servers: str, wire: Wire, whole_bytes: int
) -> None:
    t = topic_dataset("long", servers)
    since = (START + timedelta(minutes=MINUTES - 10)).isoformat()
    found = ask(wire, lambda: answer(t, f"select count(*) from t where timestamp >= '{since}'"))
    assert found == [(10 * A_MINUTE,)]
    assert wire.size_bytes <= whole_bytes / 100


@for_each(
    [
        (pc.field("partition") == 1, 0.51),
        (pc.field("partition") >= 1, 0.51),
        (pc.field("partition") < 0, 0),
        ((pc.field("offset") >= 1000) & (pc.field("offset") < 1100), 0.02),
        (pc.field("offset") == 70_000, 0.01),
        ((pc.field("partition") == 0) & (pc.field("offset").isin([5, 90])), 0.01),
        (pc.field("offset") > 10**9, 0),
        (pc.field("partition") == 77, 0),
        (pc.field("timestamp") > datetime(2030, 1, 1, tzinfo=UTC), 0),
        (pc.field("topic") == "another", 0),
        (pc.field("value") == b"x", 1.0),
    ]
)
def test_a_filter_fetches_its_share(
    filter: pc.Expression, share: float, servers: str, wire: Wire, whole_bytes: int
) -> None:
    ask(wire, lambda: topic_dataset("long", servers).count_rows(filter))
    assert wire.size_bytes <= whole_bytes * share * 1.02


def test_the_first_rows_take_one_fetch_a_partition(servers: str, wire: Wire) -> None:
    found = ask(wire, lambda: topic_dataset("long", servers).head(10))
    assert found.column("offset").to_pylist() == list(range(10))
    assert max(wire.fetches.values()) == 1


def test_the_newest_rows_take_one_fetch_a_partition(servers: str, wire: Wire) -> None:
    found = ask(wire, lambda: topic_dataset("long", servers).to_table(newest=5, columns=["offset"]))
    assert sorted(found.column("offset").to_pylist())[-1] == ROWS // PARTITIONS - 1
    assert found.num_rows >= 5 * PARTITIONS
    assert max(wire.fetches.values()) == 1


@pytest.mark.parametrize(
    "query",
    [
        'select value from "long" order by "offset" desc limit 5',
        'select "offset", key from "long" order by "offset" desc, partition limit 5',
    ],
)
def test_the_newest_rows_in_sql_take_one_fetch_a_partition(
    servers: str, wire: Wire, whole_bytes: int, query: str
) -> None:
    assert ask(wire, lambda: sql(query, servers, value_format="text")).num_rows == 5
    assert max(wire.fetches.values()) == 1
    assert wire.size_bytes < whole_bytes / 20


def test_counts_and_bounds_of_offsets_that_are_said_to_be_dense_fetch_nothing(
    servers: str, wire: Wire
) -> None:
    t = topic_dataset("long", servers, dense=True)
    asked = 'select count(*), min("offset"), max("offset") from t where partition = 1 and "offset" >= 10'
    assert ask(wire, lambda: answer(t, "select count(*) from t")) == [(ROWS,)]
    assert not wire.fetches
    assert ask(wire, lambda: sql('select count(*) as n from "long"', servers, dense=True)).to_pylist() == [
        {"n": ROWS}
    ]
    assert not wire.fetches
    last = ROWS // PARTITIONS - 1
    assert ask(wire, lambda: answer(t, asked)) == [(last - 9, 10, last)]
    assert not wire.fetches


def test_a_window_ends_reading_where_no_record_is_late(servers: str, wire: Wire, whole_bytes: int) -> None:
    first, end = START + timedelta(minutes=1000), START + timedelta(minutes=1010)
    filter = (pc.field("timestamp") >= first) & (pc.field("timestamp") < end)
    bounded = topic_dataset("long", servers, max_lateness="1m")
    assert ask(wire, lambda: bounded.count_rows(filter)) == 10 * A_MINUTE
    assert wire.size_bytes <= whole_bytes / 100
    assert ask(wire, lambda: topic_dataset("long", servers).count_rows(filter)) == 10 * A_MINUTE
    assert wire.size_bytes > whole_bytes / 2  # a late record may be anywhere behind


def test_a_key_is_read_where_its_partitioner_puts_it(servers: str, wire: Wire, whole_bytes: int) -> None:
    def by_last_digit(key: bytes | None, count: int) -> int:
        return 0

    t = topic_dataset("long", servers, key_partitioner=by_last_digit)
    found = ask(wire, lambda: t.to_table(filter=pc.field("key") == b"k0", columns=["partition"]))
    assert set(found.column("partition").to_pylist()) == {0}
    assert wire.size_bytes <= whole_bytes * 0.51
