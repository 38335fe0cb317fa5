"""Small micro-batches and the start of a stream: this source, and the JVM connector where Maven has it.

The first batch is timed from `start()` until a batch of 1,000 rows is through, in a session that has run the
same query before. Then 1,000 rows are written again and again, each time after the last were read; time is
that of Spark's own report, CPU that of the JVM and all Python workers. Rows go to the `noop` sink.

    python benchmarks/spark_stream.py [--quick] [--rounds N]

PENSTOCK_BENCH_CONNECTOR=no leaves the JVM connector out.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from broker_process import running_broker
from harness import arguments
from penstock import Admin, write_topic
from penstock.errors import PenstockError
from process_trees import tree_cpu
from spark_read import jvm_connector, plain_rows
from spark_sessions import bench_session

ROWS = 1_000
PARTITIONS = 4
PATIENCE_S = 120.0


@dataclass
class Side:
    """One source, and what was measured of it."""

    name: str
    form: str
    options: Mapping[str, str]
    first_s: list[float] = field(default_factory=list)
    batch_ms: list[float] = field(default_factory=list)
    batch_cpu_ms: list[float] = field(default_factory=list)
    phases: dict[str, list[float]] = field(default_factory=dict)


def main() -> None:
    options = arguments("Spark streams", rounds=3)
    batches = 10 if options.quick else 40
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as directory, running_broker() as brokers:
        jars = jvm_connector(Path(directory))
        config = {"spark.jars": ",".join(map(str, jars))} if jars else {}
        spark = bench_session("spark-stream", config)
        sides = [Side("penstock", "penstock", {})]
        if jars:
            sides.append(Side("JVM connector", "kafka", {"kafka.fetch.max.wait.ms": "10"}))
        try:
            for number in range(options.rounds + 1):
                for side in sides if number % 2 else reversed(sides):
                    run(spark, brokers, side, batches, f"topic-{side.form}-{number}", counts=number > 0)
        finally:
            spark.stop()
    for side in sides:
        print(
            f"{side.name:15} first batch {statistics.median(side.first_s):6.2f} s   "
            f"micro-batch of {ROWS:,}: {statistics.median(side.batch_ms):6.0f} ms, "
            f"{statistics.median(side.batch_cpu_ms):6.0f} ms CPU"
        )
        for phase, took in side.phases.items():
            print(f"{'':15}   {phase:20} {statistics.median(took):6.0f} ms")


def run(spark: Any, brokers: str, side: Side, batches: int, topic: str, *, counts: bool) -> None:
    """One query from its start to its end; it is not measured where it does not count."""
    with Admin(bootstrap_servers=brokers) as admin:
        admin.create_topic(topic, partitions=PARTITIONS)
    write_topic(plain_rows(0, ROWS), topic, brokers)
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as checkpoint:
        reader = spark.readStream.format(side.form).option("kafka.bootstrap.servers", brokers)
        reader = reader.option("subscribe", topic).option("startingOffsets", "earliest")
        frame = reader.options(**side.options).load()
        begun = time.perf_counter()
        query = frame.writeStream.format("noop").option("checkpointLocation", checkpoint).start()
        try:
            wait_for(query, ROWS)
            first = time.perf_counter() - begun
            for number in range(1, 6):
                write_topic(plain_rows(0, ROWS), topic, brokers)
                wait_for(query, ROWS * (number + 1))
            before, last = tree_cpu(), query.lastProgress["batchId"]
            for number in range(batches):
                write_topic(plain_rows(0, ROWS), topic, brokers)
                wait_for(query, ROWS * (number + 7))
            cpu = tree_cpu() - before
            seen = [p for p in query.recentProgress if p["batchId"] > last and p["numInputRows"]]
        finally:
            query.stop()
    if counts:
        side.first_s.append(first)
        side.batch_cpu_ms.append(cpu / batches * 1000)
        for report in seen:
            side.batch_ms.append(report["durationMs"]["triggerExecution"])
            for phase, took in report["durationMs"].items():
                side.phases.setdefault(phase, []).append(took)


def wait_for(query: Any, rows: int) -> None:
    """Until a query has read so many rows. Its topic gets nothing before that."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if sum(p["numInputRows"] for p in query.recentProgress) >= rows:
            return
        if not query.isActive:
            raise PenstockError(str(query.exception()))
        time.sleep(0.02)
    raise PenstockError(f"{rows} rows did not come within {PATIENCE_S:g} s")


if __name__ == "__main__":
    try:
        main()
    except PenstockError as error:
        raise SystemExit(f"spark_stream: {error}") from None
