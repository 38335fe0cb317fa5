"""Spark against a broker with TLS and SASL: batch and stream, there and back; secrets show up in no plan."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock import Admin, Broker, write_topic
from penstock.broker.security.throwaway import Security

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
