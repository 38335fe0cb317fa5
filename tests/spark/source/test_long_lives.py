"""Tests of what can happen to a query over months, with the reader that Spark runs on the driver.

| Event | Test |
|---|---|
| a leader moves | `test_a_leader_moves` |
| brokers are gone and come back | `test_brokers_are_gone_and_come_back`, `compat/test_spark_soak.py` |
| brokers stay away | `test_brokers_that_stay_away_end_the_query` |
| the session of a login ends, as with a token that expires | `test_a_session_expires` |
| a password is changed | `test_a_password_is_changed` |
| the certificate of a broker is another one | `test_a_broker_has_another_certificate` |
| the client's own certificate is another one | `test_the_client_has_another_certificate` |
| the driver is killed within a micro-batch | `test_the_driver_is_killed_within_a_batch` |
| retention removes what was not yet read | `test_retention_passes_a_slow_query` |
| partitions are added, topics appear | `test_partitions_and_topics_appear`, `test_stream_walks.py` |
| a topic is created anew | `test_a_topic_is_created_anew` |
| any of them in any order | `test_stream_walks.py` |
| leaders and workers die under load | `compat/test_spark_soak.py` (`make soak`) |
"""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from penstock import Admin, write_topic
from penstock.broker.security.throwaway import Security
from penstock.errors import AuthenticationError, PenstockError
from penstock.model import TopicPartition
from penstock.security.tls import TlsError
from penstock.spark.runtime.releases import ReadAllAvailable
from penstock.spark.source import reader
from penstock.spark.source.planning import DataLossError
from penstock.spark.source.reader import RowWork
from penstock.spark.source.stream_reader import StreamReader
from penstock.testing import KafkaBroker

SCHEMA = StructType([StructField("value", StringType()), StructField("partition", IntegerType())])
QUICK = {"kafka.default.api.timeout.ms": "1000", "kafka.request.timeout.ms": "800"}


@pytest.fixture(autouse=True)
def impatience(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("penstock.spark.source.stream_reader.RETRY_AFTER_S", 0.05)
    yield
    reader._clients.clear()


class Query:
    """A simulated streaming query: it plans and reads micro-batches as Spark does, with a checkpoint."""

    def __init__(self, settings: dict[str, str], **options: str) -> None:
        self.options = {
            **{f"kafka.{name}": value for name, value in settings.items()},
            **QUICK,
            "subscribePattern": "t.*",
            "startingOffsets": "earliest",
            **options,
        }
        self.values: list[int] = []
        self.start: Any = None
        self.logged: Any = None
        """The end offsets of a micro-batch that is planned but not completed; None without one."""
        self.restart()

    def restart(self) -> None:
        """Start a new driver, which has only the checkpoint."""
        self.reader = StreamReader(RowWork(self.options, SCHEMA, streaming=True))

    def batch(self, *, dies: bool = False) -> None:
        """Run the next micro-batch. With `dies`, read its rows without completing it."""
        if self.start is None:
            self.start = self.reader.initialOffset()
        if self.logged is None:
            end = self.reader.latestOffset(self.start, ReadAllAvailable())
            if end == self.start:
                return
            self.logged = end
        found = []
        for task in self.reader.partitions(self.start, self.logged):
            copy, part = pickle.loads(pickle.dumps((self.reader, task)))
            for rows in copy.read(part):
                found += [int(value) for value in rows.column("value").to_pylist()]
        if not dies:
            self.values += found
            self.start, self.logged = self.logged, None

    def read_until(self, count: int) -> None:
        deadline = time.monotonic() + 20
        while len(self.values) < count:
            assert time.monotonic() < deadline, self.values
            self.batch()


def fill(broker: KafkaBroker, numbers: Iterable[int], topic: str = "t", partition: int | None = None) -> None:
    values = pa.array([b"%d" % n for n in numbers], pa.binary())
    columns = {"value": values}
    if partition is not None:
        columns["partition"] = pa.array([partition] * len(values), pa.int32())
    settings = broker.client_settings()
    write_topic(pa.table(columns), topic, settings.pop("bootstrap.servers"), config=settings)


@pytest.fixture
def broker() -> Iterator[KafkaBroker]:
    with KafkaBroker(log_retention_ms=-1) as running:
        with Admin(config=running.client_settings()) as admin:
            admin.create_topic("t", partitions=2)
        fill(running, range(10))
        yield running


def query_of(broker: KafkaBroker, **options: str) -> Query:
    """Return a query that has read the first ten records."""
    query = Query(broker.client_settings(), **options)
    query.read_until(10)
    return query


def test_a_leader_moves(broker: KafkaBroker) -> None:
    query = query_of(broker)
    fill(broker, range(10, 20))
    with (
        broker.faults.fail("ListOffsets", "NOT_LEADER_OR_FOLLOWER", times=2) as asked,
        broker.faults.fail("Fetch", "NOT_LEADER_OR_FOLLOWER", times=2) as fetched,
    ):
        query.read_until(20)
    assert (asked.count, fetched.count) == (2, 2)
    assert sorted(query.values) == [*range(20)]


def test_brokers_are_gone_and_come_back(broker: KafkaBroker) -> None:
    query = query_of(broker)
    fill(broker, range(10, 20))
    query.reader.latestOffset(query.start, ReadAllAvailable())
    broker.kill()
    back = threading.Timer(1.5, broker.start)
    back.start()
    try:
        query.read_until(20)
    finally:
        back.join()
    assert sorted(query.values) == [*range(20)]


def test_brokers_that_stay_away_end_the_query(broker: KafkaBroker) -> None:
    query = query_of(broker, maxBrokerOutage="0s")
    broker.kill()
    with pytest.raises(PenstockError, match=r"127\.0\.0\.1") as caught:
        query.batch()
    assert not isinstance(caught.value, DataLossError)


def secured(security: Security) -> KafkaBroker:
    broker = KafkaBroker(security=security, log_retention_ms=-1).start()
    with Admin(config=broker.client_settings()) as admin:
        admin.create_topic("t", partitions=2)
    fill(broker, range(10))
    return broker


def test_a_session_expires() -> None:
    with secured(Security("SASL_PLAINTEXT", users={"ann": "one"})) as broker:
        query = query_of(broker)
        fill(broker, range(10, 20))
        assert broker.expire_sessions("ann") >= 1
        query.read_until(20)
        assert sorted(query.values) == [*range(20)]


def test_a_password_is_changed() -> None:
    """The query stops with an error that does not show the password.

    With the new password it continues.
    """
    security = Security(
        "SASL_PLAINTEXT", users={"ann": "canary-old", "bob": "canary-new"}, mechanisms=["PLAIN"]
    )
    with secured(security) as broker:
        query = query_of(broker)
        fill(broker, range(10, 20))
        broker.revoke_user("ann")
        with pytest.raises(AuthenticationError, match="ann") as caught:
            query.read_until(20)
        assert "canary" not in str(caught.value)
        assert sorted(query.values) == [*range(10)]
        query.options |= {"kafka.sasl.username": "bob", "kafka.sasl.password": "canary-new"}
        query.restart()
        query.read_until(20)
        assert sorted(query.values) == [*range(20)]


def test_a_broker_has_another_certificate() -> None:
    """A new certificate of the same CA is accepted on new connections."""
    with secured(Security("SSL")) as broker:
        query = query_of(broker)
        fill(broker, range(10, 20))
        broker.rotate_certificate()
        with broker.faults.close("ListOffsets", times=1), broker.faults.close("Fetch", times=1) as closed:
            query.read_until(20)
        assert closed.count == 1
        assert sorted(query.values) == [*range(20)]
        broker.rotate_certificate(expired=True)
        with broker.faults.close("ListOffsets", times=1), pytest.raises(TlsError, match="has expired"):
            query.batch()


def test_the_client_has_another_certificate(tmp_path: Path) -> None:
    """The client's key and certificate file is replaced, and new connections use the new certificate."""
    with secured(Security("SSL", client_certificates=True)) as broker:
        first, second = broker.client_settings(), broker.client_settings()
        pem = tmp_path / "client.pem"
        pem.write_bytes(Path(first["ssl.key.location"]).read_bytes())
        settings = {**first, "ssl.key.location": str(pem), "ssl.certificate.location": str(pem)}
        query = Query(settings)
        query.read_until(10)
        fill(broker, range(10, 20))
        fresh = pem.with_suffix(".new")
        fresh.write_bytes(Path(second["ssl.key.location"]).read_bytes())
        fresh.replace(pem)
        with broker.faults.close("ListOffsets", times=1), broker.faults.close("Fetch", times=1):
            query.read_until(20)
        assert sorted(query.values) == [*range(20)]


def test_the_driver_is_killed_within_a_batch(broker: KafkaBroker) -> None:
    """After the restart, the planned micro-batch contains the same records; later ones are in the next."""
    query = query_of(broker)
    fill(broker, range(10, 20))
    query.batch(dies=True)
    fill(broker, range(20, 30))
    query.restart()
    query.batch()
    assert sorted(query.values) == [*range(20)]
    query.read_until(30)
    assert sorted(query.values) == [*range(30)]


@pytest.mark.parametrize("fails", [True, False])
def test_retention_passes_a_slow_query(broker: KafkaBroker, fails: bool) -> None:
    query = query_of(broker, failOnDataLoss=str(fails).lower())
    for partition in (0, 1):
        fill(broker, range(100 * partition, 100 * partition + 10), partition=partition)
    with Admin(config=broker.client_settings()) as admin:
        ends = {TopicPartition("t", p): query.start["t"][str(p)] + 4 for p in (0, 1)}
        admin.delete_records(ends)
    if fails:
        with pytest.raises(DataLossError, match="are gone; set failOnDataLoss to 'false'"):
            query.batch()
        return
    query.read_until(22)
    assert sorted(query.values[10:]) == [*range(4, 10), *range(104, 110)]


def test_partitions_and_topics_appear(broker: KafkaBroker) -> None:
    query = query_of(broker)
    with Admin(config=broker.client_settings()) as admin:
        admin.create_partitions("t", 3)
        admin.create_topic("to-come", partitions=1)
        admin.create_topic("another", partitions=1)
    fill(broker, range(10, 20), partition=2)
    fill(broker, range(20, 30), "to-come")
    fill(broker, range(99, 100), "another")
    query.read_until(30)
    assert sorted(query.values) == [*range(30)]


def test_a_topic_is_created_anew(broker: KafkaBroker) -> None:
    query = query_of(broker)
    with Admin(config=broker.client_settings()) as admin:
        admin.delete_topics(["t"])
        admin.create_topic("t", partitions=2)
    with pytest.raises(DataLossError, match="was the topic created anew"):
        query.batch()
