"""Filters of batch queries decide what is read, and change no answer."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
)

from penstock import Admin, Broker, write_topic
from penstock.errors import ConfigError
from penstock.model import OffsetRange, TopicPartition
from penstock.queries.pushdown.spark_filters import narrowed, wanted_by
from penstock.queries.pushdown.wanted import EVERYTHING, NOTHING, Wanted
from penstock.spark.source.options import read_options
from query_wire import Wire

AT = datetime(2026, 1, 1, tzinfo=UTC)
AT_MS = int(AT.timestamp() * 1000)
GIVEN = {"kafka.bootstrap.servers": "localhost:1", "subscribe": "t", "pushFilters": "true"}


@pytest.mark.parametrize(
    ("filters", "wanted"),
    [
        ([], EVERYTHING),
        ([EqualTo(("partition",), 1), GreaterThan(("offset",), 4)], Wanted(frozenset([1]), 5)),
        ([LessThan(("offset",), 4)], Wanted(offset_end=4)),
        ([LessThanOrEqual(("offset",), 4)], Wanted(offset_end=5)),
        ([GreaterThanOrEqual(("timestamp",), AT)], Wanted(time_min_ms=AT_MS)),
        ([In(("partition",), (1, 2, None))], Wanted(frozenset([1, 2]))),
        ([EqualTo(("topic",), "t")], Wanted(topics=frozenset(["t"]))),
        ([EqualNullSafe(("offset",), None)], EVERYTHING),
        ([EqualNullSafe(("offset",), 3)], Wanted(offset_min=3, offset_end=4)),
        ([IsNull(("offset",))], NOTHING),
        ([IsNotNull(("offset",))], EVERYTHING),
        ([Not(EqualTo(("partition",), 1))], EVERYTHING),
        ([EqualTo(("value",), b"x")], EVERYTHING),
        ([EqualTo(("offset", "x"), 1)], EVERYTHING),
        ([StringContains(("topic",), "t")], EVERYTHING),
    ],
)
def test_filters_say_which_records_may_be_wanted(filters: list[Any], wanted: Wanted) -> None:
    assert wanted_by(filters) == wanted


def test_ranges_are_cut_to_what_is_wanted() -> None:
    ranges = [OffsetRange("t", 0, 0, 100), OffsetRange("t", 1, 10, 20), OffsetRange("u", 0, 0, 5)]
    asked: list[Any] = []

    def lookup(questions: Any) -> dict[TopicPartition, int | None]:
        asked.append(dict(questions))
        return {TopicPartition("t", 0): 40, TopicPartition("t", 1): None}

    wanted = Wanted(topics=frozenset(["t"]), offset_min=5, offset_end=50)
    assert narrowed(ranges, wanted, lookup) == [OffsetRange("t", 0, 5, 50), OffsetRange("t", 1, 10, 20)]
    assert not asked
    since = wanted.both(Wanted(time_min_ms=7))
    assert narrowed(ranges, since, lookup) == [OffsetRange("t", 0, 40, 50)]
    assert asked == [{TopicPartition("t", 0): 7, TopicPartition("t", 1): 7}]
    assert narrowed(ranges, NOTHING, lookup) == []


def test_streams_and_byte_offsets_have_no_filters() -> None:
    assert read_options(GIVEN, streaming=False).push_filters
    with pytest.raises(ConfigError, match="pushFilters is for batch queries"):
        read_options(GIVEN, streaming=True)
    with pytest.raises(ConfigError, match="pushFilters means nothing"):
        read_options({**GIVEN, "protocol": "0.7"}, streaming=False)


@pytest.mark.spark
def test_answers_stay_the_same_and_fewer_bytes_are_read(spark: Any) -> None:
    dice, wire = random.Random(5), Wire()
    times = [AT + timedelta(seconds=n - dice.choice([0, 0, 300])) for n in range(600)]
    table = pa.table(
        {
            "value": [b"%02000d" % n for n in range(600)],
            "partition": pa.array([n % 2 for n in range(600)], pa.int32()),
            "timestamp": pa.array(times, pa.timestamp("us", tz="UTC")),
        }
    )
    with Broker(log_retention_ms=-1, interceptors=[wire.intercept]) as broker:
        with Admin(broker.bootstrap_servers) as admin:
            admin.create_topic("t", 2)
        for start in range(0, 600, 30):
            write_topic(table.slice(start, 30), "t", broker.bootstrap_servers)

        def ask(condition: str, *, push: bool) -> tuple[list[Any], int]:
            reader = spark.read.format("penstock").option("kafka.bootstrap.servers", broker.bootstrap_servers)
            frame = reader.option("subscribe", "t").option("pushFilters", push).load()
            wire.reset()
            found = frame.where(condition).select("partition", "offset", "value").collect()
            return sorted(found), wire.size_bytes

        for condition, share in (
            ("partition = 1 and offset between 10 and 19", 0.2),
            (f"timestamp >= '{AT + timedelta(seconds=590)}'", 0.2),
            (f"timestamp >= '{AT}' and timestamp < '{AT + timedelta(seconds=30)}'", 1),
            ("partition in (1, 7) and value is not null", 0.55),
            ("offset = 5 or partition = 1", 1),
            ("topic = 'another'", 0),
        ):
            expected, whole = ask(condition, push=False)
            found, part = ask(condition, push=True)
            assert found == expected, condition
            assert part <= whole * share, condition


@pytest.mark.spark
def test_without_its_setting_spark_names_it(spark: Any, brokers: str, new_topic: Callable[..., str]) -> None:
    topic, name = new_topic(), "spark.sql.python.filterPushdown.enabled"
    assert spark.conf.get(name) == "true"
    spark.conf.set(name, "false")
    try:
        reader = spark.read.format("penstock").option("kafka.bootstrap.servers", brokers)
        with pytest.raises(Exception, match=name):
            reader.option("subscribe", topic).option("pushFilters", True).load().count()
        assert reader.option("subscribe", topic).option("pushFilters", False).load().count() == 0
    finally:
        spark.conf.set(name, "true")
