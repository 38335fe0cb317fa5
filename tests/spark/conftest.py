"""Fixtures for the Spark tests: one Spark session and one broker for all of them.

Each test creates its own topics.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    from penstock.spark import session

    # Short queries never earn back what the second compiler costs. Code is generated as it is for a user, but
    # what cannot be compiled fails the query, where Spark would log it and interpret. Spark does not note the
    # line of Python that made each column, which takes half of the time that a large expression takes.
    config = {
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.codegen.fallback": "false",
        "spark.sql.codegen.factoryMode": "CODEGEN_ONLY",
        "spark.python.sql.dataFrameDebugging.enabled": "false",
    }
    running = session("tests", "local[2]", config=config)
    yield running
    running.stop()


@pytest.fixture(scope="session")
def brokers() -> Iterator[str]:
    """Start the broker that all Spark tests share, and yield its address."""
    from penstock import Broker

    with Broker(log_retention_ms=-1) as broker:  # records of these tests are old
        yield broker.bootstrap_servers


@pytest.fixture(scope="session")
def numbers() -> Iterator[int]:
    return itertools.count()


@pytest.fixture
def new_topic(brokers: str, numbers: Iterator[int]) -> Callable[..., str]:
    """Return a function that creates a topic with a unique name, and writes `table` to it if given."""
    from penstock import Admin, write_topic

    def create(table: pa.Table | None = None, *, partitions: int = 2, name: str = "topic") -> str:
        topic = f"{name}-{next(numbers)}"
        with Admin(bootstrap_servers=brokers) as admin:
            admin.create_topic(topic, partitions=partitions)
        if table is not None:
            write_topic(table, topic, bootstrap_servers=brokers)
        return topic

    return create
