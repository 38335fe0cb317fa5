"""Tests of streaming queries: rows are returned as they arrive, windows as they close.

Queries that cannot be followed are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from for_each import for_each
from penstock import TopicPartition, sql, write_topic
from penstock.errors import ConfigError
from penstock.queries.live import WINDOW, OpenWindows

NewTopic = Callable[..., str]
START = datetime(2026, 1, 1, tzinfo=UTC)


def write(servers: str, topic: str, seconds: list[int], partition: int = 0) -> None:
    """Write one record for each of `seconds`, with a timestamp that many seconds after the start."""
    table = pa.table(
        {
            "value": [b'{"n": %d}' % second for second in seconds],
            "timestamp": [START + timedelta(seconds=second) for second in seconds],
            "partition": pa.array([partition] * len(seconds), pa.int32()),
        }
    )
    write_topic(table, topic, servers)


def rows(batches: Iterator[pa.RecordBatch], count: int) -> list[dict[str, Any]]:
    """Return the first `count` rows or a few more."""
    found: list[dict[str, Any]] = []
    while len(found) < count:
        found += next(batches).to_pylist()
    return found


def test_rows_come_as_they_are_written(servers: str, new_topic: NewTopic) -> None:
    topic = new_topic(1)
    write(servers, topic, [1, 2, 3, 4])
    with sql(f'select n * 10 as m from "{topic}" where n % 2 = 0', servers, follow=True) as found:
        assert found.schema.names == ["m"]
        assert rows(found, 2) == [{"m": 20}, {"m": 40}]
        write(servers, topic, [5, 6])
        assert rows(found, 1) == [{"m": 60}]


def test_a_time_in_the_query_says_where_to_begin(servers: str, new_topic: NewTopic) -> None:
    topic = new_topic(2)
    write(servers, topic, [1, 2, 3])
    write(servers, topic, [100, 200], 1)
    since = (START + timedelta(seconds=3)).isoformat()
    query = f"select n from \"{topic}\" where timestamp >= '{since}'"
    with sql(query, servers, follow=True) as found:
        assert sorted(row["n"] for row in rows(found, 3)) == [3, 100, 200]


def test_windows_are_emitted_as_they_close(servers: str, new_topic: NewTopic) -> None:
    topic = new_topic(2)
    write(servers, topic, [0, 10, 59, 61], 0)
    write(servers, topic, [5, 70, 119], 1)
    query = (
        f"select time_bucket(interval '1 minute', timestamp) as w, count(*) as c, sum(n)::bigint as s "
        f'from "{topic}" group by w'
    )
    with sql(query, servers, follow=True, max_lateness="10s") as found:
        assert rows(found, 1) == [{"w": START, "c": 4, "s": 74}]
        write(servers, topic, [115, 125], 0)  # one that is late, but not too late
        write(servers, topic, [131], 1)
        assert rows(found, 1) == [{"w": START + timedelta(minutes=1), "c": 4, "s": 365}]
        write(servers, topic, [3, 195], 0)  # three is too late
        assert rows(found, 1) == [{"w": START + timedelta(minutes=2), "c": 2, "s": 256}]
        assert found.late_rows == 1


@pytest.mark.parametrize(
    "select",
    [
        "select date_trunc('minute', t.timestamp) as w, partition, count(*) as c from {t} t group by 1, 2",
        "select time_bucket(interval '1 minute', timestamp) as w, partition, count(*) as c from {t} "
        "group by all having count(*) > 0",
        "select time_bucket('1 minute'::interval, timestamp) as w, partition, count(distinct n) as c "
        "from {t} where n >= 0 group by w, partition",
    ],
)
def test_windows_have_several_forms(servers: str, new_topic: NewTopic, select: str) -> None:
    topic = new_topic(1)
    write(servers, topic, [0, 10, 59, 61])
    with sql(select.replace("{t}", f'"{topic}"'), servers, follow=True) as found:
        assert rows(found, 1) == [{"w": START, "partition": 0, "c": 3}]


@for_each(
    [
        ("select count(*) from {t}", "ungrouped_aggregate"),
        ("select key, count(*) from {t} group by key", "no window of time"),
        ("select distinct key from {t}", "no window of time"),
        ("select * from {t} order by timestamp", "order_by"),
        ("select * from {t} limit 3", "streaming_limit"),
        ("select row_number() over () from {t}", "window"),
        ("select * from {t} a join {t} b using (key)", "hash_join|inner|one topic|cannot be"),
        (
            "select time_bucket(interval '1 minute', timestamp), count(*) from (select now() as timestamp "
            "from {t}) group by 1",
            "no window of time",
        ),
        (
            "with x as (select key, max(timestamp) as timestamp from {t} group by key) "
            "select date_trunc('day', timestamp), count(*) from x group by 1",
            "no window of time",
        ),
        ("select 1", "reads one topic"),
        ("insert into {t} select 1 as value", "one topic|cannot|select"),
        ("select * from nope", "there is no table 'nope'"),
        ("select a.key from {t} a join {t} b using (key)", "reads one topic, once; this one reads"),
        ("select 1; select 2", "one query"),
        ("selec", "syntax error"),
    ]
)
def test_what_cannot_be_followed_is_refused(
    select: str, said: str, servers: str, new_topic: NewTopic
) -> None:
    topic = new_topic(1)
    write(servers, topic, [0])
    with pytest.raises(ConfigError, match=said) as raised:
        sql(select.replace("{t}", f'"{topic}"'), servers, follow=True)
    if said.isidentifier() and said != "select":
        assert "Spark" in str(raised.value)


def test_partitions_that_are_behind_hold_the_watermark_back() -> None:
    one, two = TopicPartition("t", 0), TopicPartition("t", 1)
    windows = OpenWindows({one: 10, two: 20}, timedelta(seconds=5))
    kind = pa.timestamp("us", tz="UTC")

    def batch(seconds: int) -> pa.Table:
        moment = START + timedelta(seconds=seconds)
        bucket = START + timedelta(seconds=seconds // 60 * 60)
        return pa.table({"timestamp": pa.array([moment], kind), WINDOW: pa.array([bucket], kind)})

    assert windows.watermark() is None
    windows.add(one, batch(300))
    assert windows.watermark() is None  # nothing is known of the other
    windows.add(two, batch(30))
    assert windows.watermark() == START + timedelta(seconds=25)
    windows.reached(two, 20)
    assert windows.watermark() == START + timedelta(seconds=295)
    windows.reached(one, 10)
    assert windows.watermark() == START + timedelta(seconds=295)
    assert windows.closed(pa.scalar(START + timedelta(minutes=1), kind)).num_rows == 1
    assert windows.add(two, batch(40)) == 1  # its window is closed
    assert windows.add(two, batch(65)) == 0


def test_a_row_that_a_query_cannot_compute_is_an_error_with_its_reason(
    servers: str, new_topic: NewTopic
) -> None:
    topic = new_topic(1)
    write(servers, topic, [7])
    with (
        sql(f"select (value || 'x')::integer as n from \"{topic}\"", servers, follow=True) as found,
        pytest.raises(ConfigError, match="Conversion Error"),
    ):
        next(found)
