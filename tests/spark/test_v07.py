"""Tests of reading a Kafka 0.7 topic with Spark, as a table and as a stream that is restarted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException

from penstock.spark import reason
from penstock.v07.driver import Driver07
from penstock.v07.server import Broker07

pytestmark = pytest.mark.spark


@pytest.fixture
def old(tmp_path: Path) -> Iterator[Broker07]:
    with Broker07(tmp_path / "old", settings={"num.partitions": 2, "log.file.size": 2_000}) as running:
        yield running


def send(old: Broker07, first: int, count: int) -> None:
    with Driver07(old.host, old.port) as driver:
        for number in range(first, first + count):
            driver.send("t", [b"%d" % number], partition=number % 2)
        assert driver.latest("t", 0) + driver.latest("t", 1)


def options(old: Broker07, **more: object) -> dict[str, object]:
    where = f"{old.host}:{old.port}"
    return {"kafka.bootstrap.servers": where, "subscribe": "t", "protocol": "0.7", **more}


def test_a_table(spark: Any, old: Broker07) -> None:
    send(old, 0, 200)
    table = spark.read.format("penstock").options(**options(old)).load().toArrow()
    by_partition = [
        [
            row["value"]
            for row in sorted(table.to_pylist(), key=lambda row: row["offset"])
            if row["partition"] == n
        ]
        for n in (0, 1)
    ]
    assert by_partition == [[b"%d" % number for number in range(n, 200, 2)] for n in (0, 1)]


def test_a_stream_goes_on_where_it_was(spark: Any, old: Broker07, tmp_path: Path) -> None:
    collected: list[bytes] = []

    def run() -> None:
        stream = (
            spark.readStream.format("penstock").options(**options(old, startingOffsets="earliest")).load()
        )
        query = (
            stream.writeStream.foreachBatch(
                lambda frame, _: collected.extend(row.value for row in frame.select("value").collect())
            )
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    for first in (0, 50, 51):
        send(old, first, 50)
        run()
        assert sorted(map(int, collected)) == sorted(
            [*range(50), *range(50, 100), *range(51, 101)][: len(collected)]
        )
    assert len(collected) == 150


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"protocol": "0.6"}, "protocol is one of kafka, 0.7, not '0.6'"),
        ({"maxOffsetsPerTrigger": 5}, "maxOffsetsPerTrigger means nothing with protocol 0.7"),
        ({"kafka.bootstrap.servers": "0:h:1,1:h:2"}, "the source reads one Kafka 0.7 broker"),
    ],
)
def test_mistakes_are_told(spark: Any, old: Broker07, more: dict[str, object], message: str) -> None:
    with pytest.raises(PySparkException) as caught:
        spark.read.format("penstock").options(**{**options(old), **more}).load().count()
    assert message in reason(caught.value)
