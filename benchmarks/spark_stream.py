"""Measure small micro-batches and the start of a Spark stream, with Penstock's source and the JVM's.

The first batch is timed from `start()` to the end of a batch of 1,000 rows, in a session that has run the
same query before. Then 1,000 rows are written repeatedly, each time after the former ones were read. Time is
the duration that Spark reports; CPU is that of the JVM and all Python workers. Rows go to the `noop` sink.

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
from harness import arguments, print_table
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
    """A measured data source, with its figures."""

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
    rows = [
        ("first batch, s", *(f"{statistics.median(side.first_s):.2f}" for side in sides)),
        (f"micro-batch of {ROWS:,}, ms", *(f"{statistics.median(side.batch_ms):.0f}" for side in sides)),
        ("the same, ms of CPU", *(f"{statistics.median(side.batch_cpu_ms):.0f}" for side in sides)),
    ]
    rows += [
        (f"of which {phase}, ms", *(f"{statistics.median(side.phases[phase]):.0f}" for side in sides))
        for phase in sides[0].phases
    ]
    print_table("A stream", ("", *(side.name for side in sides)), rows)


def run(spark: Any, brokers: str, side: Side, batches: int, topic: str, *, counts: bool) -> None:
    """Run one query from its start to its end; record its figures only if `counts` is true."""
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
    """Wait until a streaming query has read `rows` rows.

    Nothing is written to its topic meanwhile.
    """
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
