"""Answers of Spark are those over a full copy: generated queries over generated topics."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from penstock import Admin, Broker, read_topic
from query_topics import KINDS, make_topic, query

pytestmark = [pytest.mark.spark, pytest.mark.slow]
names = (f"filtered-{number}" for number in itertools.count())


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    """A broker that compacts all the time."""
    with Broker(log_retention_ms=-1, log_cleaner_backoff_ms=100) as broker:
        yield broker.bootstrap_servers


def in_spark(asked: str) -> str:
    """A query of `query_topics` in Spark's SQL."""
    asked = re.sub(
        r"make_timestamptz\((\d+)::bigint \* 1000 \+ (\d)\)", r"timestamp_micros(\g<1>000 + \2)", asked
    )
    return asked.replace('"offset"', "`offset`").replace("::blob", "::binary")


def comparable(table: pa.Table) -> list[str]:
    """Rows without their order, in which the two differ about nulls; times as numbers.

    A record without headers has null there in Spark, as with the connector, and an empty list elsewhere.
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
    """Ask one DataFrame of Spark again and again, and DuckDB over a copy."""
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
