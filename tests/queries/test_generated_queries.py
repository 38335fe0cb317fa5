"""Tests that random queries on random topics give the answers of DuckDB on a full copy of the topic."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest

from penstock import Admin, Broker, read_topic
from penstock.queries import topic_dataset
from penstock.queries.dataset import RecordDataset
from query_topics import KINDS, make_topic, query

names = (f"asked-{number}" for number in itertools.count())


def same_answers(dataset: RecordDataset, copy: pa.Table, seed: int, queries: int) -> None:
    """Run random queries on the data set and on a copy, and compare the answers."""
    dice = random.Random(seed)
    connection = duckdb.connect()
    connection.execute("set timezone = 'UTC'")
    for number in range(queries):
        asked = query(dice)
        connection.register("t", dataset)
        found = connection.sql(asked).to_arrow_table()
        connection.unregister("t")
        connection.register("t", copy)
        expected = connection.sql(asked).to_arrow_table()
        connection.unregister("t")
        assert found.to_pylist() == expected.to_pylist(), (seed, number, asked)


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    """Start a broker that compacts its logs continually, and yield its address."""
    with Broker(log_retention_ms=-1, log_cleaner_backoff_ms=100) as broker:
        yield broker.bootstrap_servers


@pytest.fixture(scope="module")
def admin(servers: str) -> Iterator[Admin]:
    with Admin(servers) as admin:
        yield admin


@pytest.mark.parametrize("kind", KINDS)
def test_answers_are_those_over_a_full_copy(servers: str, admin: Admin, kind: str) -> None:
    _ask(kind, servers, admin, seed=KINDS.index(kind), queries=40)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(50))
def test_many_answers_are_those_over_a_full_copy(servers: str, admin: Admin, seed: int) -> None:
    _ask(KINDS[seed % len(KINDS)], servers, admin, seed=1_000 + seed, queries=40)


def _ask(kind: str, servers: str, admin: Admin, *, seed: int, queries: int) -> None:
    name = next(names)
    make_topic(kind, servers, admin, name, seed)
    isolation = "read_committed" if kind == "transactional" else "read_uncommitted"
    copy = read_topic(name, servers, isolation=isolation)
    assert (copy.num_rows == 0) == (kind == "empty")
    dataset = topic_dataset(name, servers, isolation=isolation)
    same_answers(dataset, copy.select(dataset.schema.names), seed, queries)
