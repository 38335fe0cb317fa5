"""Tests of Spark with a broker that requires TLS and SASL: batch and streaming, reading and writing.

No plan shows a secret.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock import Admin, Broker, Consumer, Producer, write_topic
from penstock.broker.security.throwaway import Security
from penstock.testing import KafkaBroker

pytestmark = pytest.mark.spark

CANARY = "canary-40be"


@pytest.fixture(scope="module")
def secured() -> Iterator[Broker]:
    with Broker(security=Security("SASL_SSL", users={"ann": CANARY}), log_retention_ms=-1) as broker:
        with Admin(config=broker.client_settings()) as admin:
            admin.create_topic("in", partitions=2)
            admin.create_topic("out", partitions=1)
        yield broker


def options(broker: Broker) -> dict[str, str]:
    return {f"kafka.{name}": value for name, value in broker.client_settings().items()}


def test_batches_and_streams_from_and_to_a_secured_cluster(
    spark: Any, secured: Broker, tmp_path: Path
) -> None:
    import pyarrow as pa

    settings = secured.client_settings()
    table = pa.table({"value": pa.array([b"%d" % number for number in range(500)], pa.binary())})
    write_topic(table, "in", bootstrap_servers=settings.pop("bootstrap.servers"), config=settings)
    frame = spark.read.format("penstock").options(**options(secured)).option("subscribe", "in").load()
    assert frame.count() == 500
    query = (
        spark.readStream.format("penstock")
        .options(**options(secured))
        .option("subscribe", "in")
        .option("startingOffsets", "earliest")
        .load()
        .select("value")
        .writeStream.format("penstock")
        .options(**options(secured))
        .option("topic", "out")
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    assert query.exception() is None
    written = spark.read.format("penstock").options(**options(secured)).option("subscribe", "out").load()
    assert sorted(int(row.value) for row in written.collect()) == list(range(500))
    explained = query._jsq.explainInternal(True)
    kept = b"".join([path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()])
    assert CANARY not in explained
    assert CANARY not in str(query.lastProgress)
    assert CANARY.encode() not in kept


def test_a_wrong_password_is_told_without_being_shown(spark: Any, secured: Broker) -> None:
    wrong = {**options(secured), "kafka.sasl.password": f"{CANARY}-wrong"}
    with pytest.raises(Exception, match="does user 'ann' exist") as caught:
        spark.read.format("penstock").options(**wrong).option("subscribe", "in").load().count()
    assert CANARY not in str(caught.value)


def test_a_query_goes_on_when_its_password_is_replaced(spark: Any, tmp_path: Path) -> None:
    """The user's password changes at the broker first, and later in the file that the query reads."""
    security = Security("SASL_PLAINTEXT", users={"admin": "x", "ann": "first"}, mechanisms=["SCRAM-SHA-256"])
    with KafkaBroker(security=security) as broker:
        for topic in ("in", "out"):
            broker.create_topic(topic, partitions=2)
        path = tmp_path / "password"
        path.write_text("first")
        login = {**broker.client_settings("ann"), "sasl.password": f"${{file:{path}}}"}
        secured = {f"kafka.{name}": value for name, value in login.items()}
        query = (
            spark.readStream.format("penstock")
            .options(**secured)
            .option("subscribe", "in")
            .option("startingOffsets", "earliest")
            .load()
            .select("value")
            .writeStream.format("penstock")
            .options(**secured)
            .option("topic", "out")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .start()
        )
        try:
            with (
                Producer(config=broker.client_settings("admin")) as producer,
                Consumer(config=broker.client_settings("admin")) as consumer,
                Admin(config=broker.client_settings("admin")) as admin,
            ):
                consumer.assign([("out", 0), ("out", 1)])
                consumer.seek_to_beginning()
                for number in range(2):
                    if number:
                        admin.set_password("ann", "second", ["SCRAM-SHA-256"])
                        broker.expire_sessions("ann")
                    producer.send("in", b"%d" % number).result(30)
                    if number:
                        time.sleep(0.5)
                        assert query.isActive
                        path.write_text("second")
                    assert one_value(consumer, query) == b"%d" % number
        finally:
            query.stop()
        assert query.exception() is None


def one_value(consumer: Consumer, query: Any) -> bytes | None:
    """Wait for the consumer's next record, which must be a single one, and return its value."""
    while query.isActive:
        found = consumer.poll(1_000)
        if found:
            assert len(found) == 1
            return found[0].value
    raise AssertionError(str(query.exception()))


@pytest.fixture(scope="module")
def with_certificates() -> Iterator[Broker]:
    security = Security("SSL", users=["ann"], client_certificates=True)
    with Broker(security=security, log_retention_ms=-1) as broker:
        yield broker


def test_a_private_key_as_text_shows_in_no_plan(spark: Any, with_certificates: Broker) -> None:
    """Penstock's sessions use `spark.redaction.regex`, others `spark.sql.redaction.options.regex`."""
    settings = with_certificates.client_settings("ann")
    text = Path(settings.pop("ssl.key.location")).read_text()
    key, begin, chain = text.partition("-----BEGIN CERTIFICATE-----")
    chain = begin + chain
    del settings["ssl.certificate.location"]
    canary = key.splitlines()[1]
    settings |= {"ssl.keystore.key": key, "ssl.keystore.certificate.chain": chain}
    with Admin(config=settings) as admin:
        admin.create_topic("keyed", partitions=1)

    def plan(client: str = "c") -> str:
        frame = (
            spark.readStream.format("penstock")
            .options(**{f"kafka.{name}": value for name, value in settings.items()})
            .option("kafka.client.id", client)
            .option("subscribe", "keyed")
            .load()
        )
        return str(frame._jdf.queryExecution().toString())

    explained = plan()
    assert "subscribe=keyed" in explained, "options are printed"
    assert canary not in explained
    # The setting that any session can be given while it runs, shown by an option that ours does not hide.
    assert "plain-canary" in plan("plain-canary")
    spark.conf.set("spark.sql.redaction.options.regex", "(?i)url|plain-canary")
    try:
        assert "plain-canary" not in plan("plain-canary")
    finally:
        spark.conf.unset("spark.sql.redaction.options.regex")
