from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from penstock.spark import reason

pytestmark = pytest.mark.spark

HEADERS = pa.list_(pa.field("element", pa.struct([("key", pa.string()), ("value", pa.binary())])))


def counted(rows: int, *, partitions: int = 2, first: int = 0) -> pa.Table:
    """Return records n = first, first + 1, ... with value n, key n mod 5 and timestamp n ms.

    They are in partition n mod `partitions`.
    """
    n = range(first, first + rows)
    return pa.table(
        {
            "key": pa.array([b"%d" % (i % 5) if i % 5 else None for i in n], pa.binary()),
            "value": pa.array([b"%d" % i for i in n], pa.binary()),
            "partition": pa.array([i % partitions for i in n], pa.int32()),
            "timestamp": pa.array([i * 1000 for i in n], pa.timestamp("us", tz="UTC")),
        }
    )


def source(spark: Any, brokers: str, topic: str, schema: str | None = None, **options: object) -> Any:
    reader = (
        spark.read.format("penstock").option("kafka.bootstrap.servers", brokers).option("subscribe", topic)
    )
    for name, value in options.items():
        reader = reader.option(name, value)
    return (reader.schema(schema) if schema else reader).load()


def test_every_column_of_every_record(spark: Any, brokers: str, new_topic: Callable[..., str]) -> None:
    topic = new_topic(counted(1000))
    frame = source(spark, brokers, topic)
    assert frame.columns == ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"]
    table = frame.toArrow().sort_by([("partition", "ascending"), ("offset", "ascending")])
    expected = counted(1000).sort_by([("partition", "ascending"), ("timestamp", "ascending")])
    for name in ("key", "value", "partition"):
        assert table[name].to_pylist() == expected[name].to_pylist()
    assert (
        table["timestamp"].cast(pa.int64()).to_pylist() == expected["timestamp"].cast(pa.int64()).to_pylist()
    )
    assert set(table["topic"].to_pylist()) == {topic}
    assert table["offset"].to_pylist() == [*range(500)] * 2
    assert set(table["timestampType"].to_pylist()) == {0}


def test_a_schema_prunes_columns_and_reads_bytes_as_text(
    spark: Any, brokers: str, new_topic: Callable[..., str]
) -> None:
    topic = new_topic(counted(10))
    frame = source(spark, brokers, topic, "offset bigint, value string")
    assert sorted(tuple(row) for row in frame.collect()) == sorted((n // 2, str(n)) for n in range(10))
    assert source(spark, brokers, topic, "topic string").distinct().collect() == [(topic,)]


def test_headers_with_nulls_and_repeats(spark: Any, brokers: str, new_topic: Callable[..., str]) -> None:
    headers = [
        [("a", b"1"), ("a", b"2"), ("b", None)],
        [],
        [("", b"")],
    ]
    table = pa.table(
        {
            "value": pa.array([b"x", None, b"z"], pa.binary()),
            "headers": pa.array([[{"key": k, "value": v} for k, v in row] for row in headers], HEADERS),
        }
    )
    topic = new_topic(table, partitions=1)
    rows = source(spark, brokers, topic, includeHeaders="true").orderBy("offset").collect()
    assert [[(h.key, h.value) for h in row.headers or []] for row in rows] == headers
    assert [row.value for row in rows] == [b"x", None, b"z"]


def test_bounds_by_offset_and_by_time(spark: Any, brokers: str, new_topic: Callable[..., str]) -> None:
    topic = new_topic(counted(100))
    by_offset = source(
        spark,
        brokers,
        topic,
        startingOffsets=f'{{"{topic}": {{"0": 10, "1": -2}}}}',
        endingOffsets=f'{{"{topic}": {{"0": 12, "1": 3}}}}',
    )
    found = sorted((row.partition, row.offset) for row in by_offset.collect())
    assert found == [(0, 10), (0, 11), (1, 0), (1, 1), (1, 2)]
    by_time = source(spark, brokers, topic, "value string", startingTimestamp=90, endingTimestamp=95)
    assert sorted(int(row.value) for row in by_time.collect()) == [90, 91, 92, 93, 94]


def test_assignment_and_pattern(spark: Any, brokers: str, new_topic: Callable[..., str]) -> None:
    one, two = new_topic(counted(4), name="pattern"), new_topic(counted(6), name="pattern")
    reader = spark.read.format("penstock").option("kafka.bootstrap.servers", brokers)
    assigned = reader.option("assign", f'{{"{one}": [1], "{two}": [0]}}').load()
    assert sorted((row.topic, row.partition) for row in assigned.distinct().collect()) == sorted(
        [(one, 1)] * 2 + [(two, 0)] * 3
    )
    reader = spark.read.format("penstock").option("kafka.bootstrap.servers", brokers)
    assert reader.option("subscribePattern", "pattern-.*").load().count() == 10


def test_more_tasks_than_partitions(spark: Any, brokers: str, new_topic: Callable[..., str]) -> None:
    topic = new_topic(counted(1000))
    frame = source(spark, brokers, topic, "value string", minPartitions=5)
    assert frame.rdd.getNumPartitions() == 5
    assert sorted(int(row.value) for row in frame.collect()) == [*range(1000)]


def test_an_empty_topic(spark: Any, brokers: str, new_topic: Callable[..., str]) -> None:
    assert source(spark, brokers, new_topic()).count() == 0


def test_rows_written_are_the_rows_read(spark: Any, brokers: str, new_topic: Callable[..., str]) -> None:
    topic, copy, other = new_topic(counted(300)), new_topic(), new_topic()
    frame = source(spark, brokers, topic, includeHeaders="true")
    writer = frame.write.format("penstock").option("kafka.bootstrap.servers", brokers).mode("append")
    writer.option("topic", copy).save()
    columns = ["key", "value", "partition", "offset", "timestamp"]
    back = source(spark, brokers, copy)
    assert sorted(map(repr, back.select(columns).collect())) == sorted(
        map(repr, frame.select(columns).collect())
    )
    routed = frame.selectExpr(
        "key", "cast(value as string) value", f"if(partition = 0, '{copy}', '{other}') topic", "1 as ignored"
    )
    routed.write.format("penstock").option("kafka.bootstrap.servers", brokers).mode("append").save()
    assert source(spark, brokers, copy).count() == 450
    assert source(spark, brokers, other).count() == 150


def cause(action: Callable[[], object]) -> tuple[str, str]:
    """Return the first line of the exception that `action` raises, and the reason found in it."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 - Spark has many
        action()
    return str(caught.value).splitlines()[0], reason(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"subscribe": "nowhere"}, "unknown topic 'nowhere'"),
        ({"subscribe": "x", "startingOfsets": "earliest"}, "did you mean 'startingOffsets'"),
        ({}, "say what to read"),
    ],
)
def test_mistakes_are_told_in_one_line(
    spark: Any, brokers: str, options: dict[str, str], message: str
) -> None:
    reader = spark.read.format("penstock").option("kafka.bootstrap.servers", brokers).options(**options)
    line, why = cause(lambda: reader.load().collect())
    assert message in line
    assert message in why
    assert "penstock" not in why


def test_mistakes_in_writing(spark: Any, brokers: str) -> None:
    def writer(frame: Any, mode: str = "append") -> Any:
        return frame.write.format("penstock").option("kafka.bootstrap.servers", brokers).mode(mode)

    good, bad = spark.sql("select 'x' value"), spark.sql("select 1 value")
    assert "say where to write" in cause(lambda: writer(good).save())[0]
    assert "column 'value' is int" in cause(lambda: writer(bad).option("topic", "t").save())[0]
    assert "cannot be overwritten" in cause(lambda: writer(good, "overwrite").option("topic", "t").save())[0]
    nulls = spark.sql("select 'x' value, cast(null as string) topic")
    assert "null in its column 'topic'" in cause(lambda: writer(nulls).save())[1]


def test_nobody_there(spark: Any) -> None:
    reader = (
        spark.read.format("penstock")
        .option("kafka.bootstrap.servers", "127.0.0.1:1")
        .option("subscribe", "t")
    )
    line, why = cause(lambda: reader.load().collect())
    assert "127.0.0.1:1" in line
    assert "127.0.0.1:1" in why
