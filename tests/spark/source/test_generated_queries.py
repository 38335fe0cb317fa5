"""Tests that Spark gives the answers of DuckDB on a full copy, for random queries on random topics."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from penstock import Admin, Broker, read_topic
from penstock.registry import Registry
from query_topics import KINDS, condition, make_topic, query
from versioned_values import decoded_copy, fill, inside

pytestmark = [pytest.mark.spark, pytest.mark.slow]
names = (f"filtered-{number}" for number in itertools.count())


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    """Start a broker that compacts its logs continually, and yield its address."""
    with Broker(log_retention_ms=-1, log_cleaner_backoff_ms=100) as broker:
        yield broker.bootstrap_servers


def in_spark(asked: str) -> str:
    """Return a query of `query_topics` in Spark's SQL dialect."""
    asked = re.sub(
        r"make_timestamptz\((\d+)::bigint \* 1000 \+ (\d)\)", r"timestamp_micros(\g<1>000 + \2)", asked
    )
    return asked.replace('"offset"', "`offset`").replace("::blob", "::binary")


def comparable(table: pa.Table) -> list[str]:
    """Return a table's rows as sorted texts, in which equal rows of Spark and DuckDB are equal.

    Times are numbers. A record without headers has null there in Spark, as with Spark's Kafka connector, and
    an empty list elsewhere.
    """

    def plain(value: Any) -> Any:
        if isinstance(value, datetime):
            return value.timestamp()
        if value == []:
            return None
        if isinstance(value, Decimal):  # DuckDB's sums of integers
            return int(value)
        return bytes(value) if isinstance(value, bytearray) else value

    columns = [column.to_pylist() for column in table.columns]
    return sorted(repr([plain(value) for value in row]) for row in zip(*columns, strict=True))


def same_answers(spark: Any, servers: str, kind: str, *, seed: int, queries: int) -> None:
    """Run random queries on one Spark DataFrame and on a copy in DuckDB, and compare the answers."""
    name = next(names)
    with Admin(servers) as admin:
        make_topic(kind, servers, admin, name, seed)
    isolation = "read_committed" if kind == "transactional" else "read_uncommitted"
    copy = read_topic(name, servers, isolation=isolation)
    reader = spark.read.format("penstock").option("kafka.bootstrap.servers", servers)
    reader = reader.option("subscribe", name).option("includeHeaders", True)
    reader.option("kafka.isolation.level", isolation).load().createOrReplaceTempView("t")
    dice = random.Random(seed)
    connection = duckdb.connect()
    connection.execute("set timezone = 'UTC'")
    connection.register("t", copy)
    for number in range(queries):
        asked = query(dice)
        found = spark.sql(in_spark(asked)).toArrow()
        expected = connection.sql(asked).to_arrow_table()
        assert comparable(found) == comparable(expected), (seed, number, asked)


@pytest.mark.parametrize("kind", KINDS)
def test_answers_are_those_over_a_full_copy(spark: Any, servers: str, kind: str) -> None:
    same_answers(spark, servers, kind, seed=KINDS.index(kind), queries=8)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(50))
def test_many_answers_are_those_over_a_full_copy(spark: Any, servers: str, seed: int) -> None:
    same_answers(spark, servers, KINDS[seed % len(KINDS)], seed=2_000 + seed, queries=40)


def same_values(spark: Any, servers: str, *, seed: int, queries: int) -> None:
    """Run random queries on fields of values of three schema versions, and compare the answers.

    They run on one DataFrame, and in DuckDB on a decoded copy.
    """
    name, dice = next(names), random.Random(seed)
    with Admin(servers) as admin, Registry() as registry:
        admin.create_topic(name, 2)
        fill(name, servers, registry.client(), dice)
        copy = decoded_copy(name, servers, registry)
        reader = spark.read.format("penstock").option("kafka.bootstrap.servers", servers)
        reader = reader.option("subscribe", name).option("value.format", "avro")
        reader.option("schema.registry.url", registry.url).load().createOrReplaceTempView("t")
        connection = duckdb.connect()
        connection.register("t", copy)
        for _ in range(queries):
            where = f"{inside(dice)} {dice.choice(['and', 'or'])} {inside(dice)}"
            place = dice.choice(["true", f'"offset" < {dice.randrange(160)}', "partition = 1"])
            asked = f'select partition, "offset", id, city, value_offset from t where ({where}) and {place}'
            found = spark.sql(in_spark(asked).replace("len(tags)", "size(tags)")).toArrow()
            assert comparable(found) == comparable(connection.sql(asked).to_arrow_table()), (seed, asked)


def test_values_of_several_versions_are_those_of_a_decoded_copy(spark: Any, servers: str) -> None:
    same_values(spark, servers, seed=5, queries=6)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(5))
def test_many_values_of_several_versions_are_those_of_a_decoded_copy(
    spark: Any, servers: str, seed: int
) -> None:
    same_values(spark, servers, seed=6_000 + seed, queries=40)


NOT_DECIDED = re.compile("octet_length|%")
"""Conditions of `query_topics` that the option `where` refuses: functions and arithmetic."""


def for_option(asked: str) -> str:
    """Return a condition of `query_topics` as the option `where` accepts it: times are texts with a zone."""

    def time(found: re.Match[str]) -> str:
        us = int(found[1]) * 1000 + int(found[2])
        moment = datetime.fromtimestamp(us // 1_000_000, UTC) + timedelta(microseconds=us % 1_000_000)
        return f"timestamp '{moment.isoformat(' ', 'microseconds')}'"

    asked = re.sub(r"make_timestamptz\((\d+)::bigint \* 1000 \+ (\d)\)", time, asked)
    return asked.replace('"offset"', "`offset`").replace("::blob", "")


def decided(dice: random.Random) -> str:
    """Return a random condition that the option `where` accepts."""
    while NOT_DECIDED.search(made := condition(dice)):
        pass
    return made


def same_rows(spark: Any, servers: str, kind: str, *, seed: int, conditions: int) -> None:
    """Check that a condition as option `where` gives the rows of `DataFrame.where` on the whole topic."""
    name = next(names)
    with Admin(servers) as admin:
        make_topic(kind, servers, admin, name, seed)
    isolation = "read_committed" if kind == "transactional" else "read_uncommitted"
    dice = random.Random(seed)
    given = {"kafka.bootstrap.servers": servers, "subscribe": name, "kafka.isolation.level": isolation}
    whole = spark.read.format("penstock").options(includeHeaders=True, **given).load()
    for number in range(conditions):
        asked = decided(dice)
        narrow = spark.read.format("penstock").options(where=for_option(asked), includeHeaders=True, **given)
        if number % 2:  # columns that the condition does not look at
            narrow = narrow.schema("value binary, headers array<struct<key: string, value: binary>>")
        found = narrow.load()
        expected = whole.where(in_spark(asked))
        if number % 2:
            expected = expected.select("value", "headers")
        assert comparable(found.toArrow()) == comparable(expected.toArrow()), (seed, number, asked)


@pytest.mark.parametrize("kind", KINDS)
def test_the_option_where_has_the_rows_of_where(spark: Any, servers: str, kind: str) -> None:
    same_rows(spark, servers, kind, seed=900 + KINDS.index(kind), conditions=8)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(25))
def test_many_options_where_have_the_rows_of_where(spark: Any, servers: str, seed: int) -> None:
    same_rows(spark, servers, KINDS[seed % len(KINDS)], seed=4_000 + seed, conditions=40)


ZONED = (
    "timestamp >= '2023-11-14 22:15:00'",
    "timestamp < '2023-11-14'",
    "timestamp between '2023-11-14 22:15' and timestamp '2023-11-14 22:16:30.5'",
    "timestamp >= '2023-11-15 00:15:00+02:00'",
    "timestamp >= '2023-11-14 23:15:00 Europe/Berlin'",
    "timestamp < '2023-11-14T14:17:00.250 America/Los_Angeles'",
    "timestamp > '2023-11-14 22:15:00Z' or timestamp < date '2023-11-14'",
    "key in ('a', 'c') or key > X'61' and value <=> 'x'",
    "key <> 'b' and value is distinct from X'fffe'",
    "timestamp <> '2023-11-14 22:15:00.000' and not timestamp in ('2023-11-14 22:14:00 UTC', null)",
)


def test_texts_mean_what_they_mean_to_spark(spark: Any, servers: str) -> None:
    """The test gives each text to the option `where` and to Spark's own `where`."""
    name = next(names)
    with Admin(servers) as admin:
        make_topic("plain", servers, admin, name, 77)
    reader = spark.read.format("penstock").options(subscribe=name, **{"kafka.bootstrap.servers": servers})
    whole = reader.load()
    for text in ZONED:
        found, expected = reader.option("where", text).load(), whole.where(text)
        assert comparable(found.toArrow()) == comparable(expected.toArrow()), text


def test_a_session_in_another_zone_is_refused_times_without_one(spark: Any, servers: str) -> None:
    """A time without a zone is refused even if no record could match it in UTC."""
    name = next(names)
    with Admin(servers) as admin:
        make_topic("plain", servers, admin, name, 78)
    reader = spark.read.format("penstock").options(subscribe=name, **{"kafka.bootstrap.servers": servers})
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        for bare in ("timestamp >= '2023-11-14 22:15:00'", "timestamp >= '2024-01-01'"):
            with pytest.raises(Exception, match="timeZone is Asia/Tokyo: name the zone in the time"):
                reader.option("where", bare).load().count()
        named = "timestamp >= '2023-11-15 07:15:00 Asia/Tokyo'"
        assert reader.option("where", named).load().count() == reader.load().where(named).count() > 0
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


def test_one_frame_with_the_option_answers_every_question_right(spark: Any, servers: str) -> None:
    """Queries of one DataFrame share a plan, which broke with Spark's `pushFilters`.

    The option `where` is part of the plan.
    """
    name = next(names)
    with Admin(servers) as admin:
        make_topic("plain", servers, admin, name, 2)
    reader = spark.read.format("penstock").options(subscribe=name, **{"kafka.bootstrap.servers": servers})
    whole = reader.load()
    one = reader.option("where", "partition = 0").load()
    count = whole.where("partition = 0").count()
    assert one.count() == one.where("partition = 0").count() == count
    assert one.where("partition = 1").count() == 0
    assert one.union(whole).count() == count + whole.count()
    assert one.alias("a").join(one.alias("b"), ["partition", "offset"]).count() == count


def test_what_is_refused_is_said_where_the_query_is_made(spark: Any, servers: str, tmp_path: Path) -> None:
    given = {"kafka.bootstrap.servers": servers, "subscribe": "any"}
    with pytest.raises(Exception, match=r"cannot decide a function: LENGTH\(value\)"):
        spark.read.format("penstock").options(where="length(value) > 3", **given).load()
    stream = spark.readStream.format("penstock").options(where="partition = 1", **given).load()
    query = stream.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "c")).start()
    with pytest.raises(Exception, match="where is for batch queries"):
        query.awaitTermination(60)
