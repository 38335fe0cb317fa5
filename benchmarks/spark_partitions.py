"""Measure the cost of partitions in Spark, for topics of 1 to 4,096 partitions and both Kafka sources.

The sources are Penstock's and the JVM connector. Each topic has the same number of records. A batch query
reads all of them; a stream reads all of them in its first batch, and then micro-batches of 1,000 records
spread over the partitions. CPU is that of the JVM and all Python workers. Rows go to the `noop` sink.

    python benchmarks/spark_partitions.py [--quick] [--rounds N]

--quick leaves 4,096 partitions out; PENSTOCK_BENCH_CONNECTOR=no the JVM connector.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from broker_process import running_broker
from harness import arguments, print_table
from penstock import Admin, write_topic
from penstock.errors import PenstockError
from process_trees import tree_cpu
from spark_read import jvm_connector, plain_rows
from spark_sessions import bench_session

PARTITIONS = (1, 16, 256, 4096)
ROWS = 65_536
MICRO_ROWS = 1_000
PATIENCE_S = 300.0
OPENING = "penstock.log.open.ms.max=1000"
"""A broker setting that lets it open logs as fast as possible, since only Spark is to be measured."""


def main() -> None:
    options = arguments("Spark and the number of partitions", rounds=3)
    sizes = PARTITIONS[:-1] if options.quick else PARTITIONS
    with (
        tempfile.TemporaryDirectory(prefix="penstock-bench-") as directory,
        running_broker(OPENING) as brokers,
    ):
        jars = jvm_connector(Path(directory))
        config = {"spark.sql.ui.retainedExecutions": "1"}
        if jars:
            config["spark.jars"] = ",".join(map(str, jars))
        spark = bench_session("spark-partitions", config)
        forms = ["penstock", "kafka"] if jars else ["penstock"]
        try:
            for partitions in sizes:
                found = measured(spark, brokers, partitions, forms, options.rounds)
                rows = [
                    (name, *(f"{statistics.median(figures[name]):.2f}" for figures in found.values()))
                    for name in next(iter(found.values()))
                ]
                print_table(f"{partitions:,} partitions, {ROWS:,} records", ("", *found), rows)
        finally:
            spark.stop()


def measured(
    spark: Any, brokers: str, partitions: int, forms: list[str], rounds: int
) -> dict[str, dict[str, list[float]]]:
    """Return the seconds and CPU seconds of each source, keyed by source and measured step.

    A first round is run but not counted.
    """
    found: dict[str, dict[str, list[float]]] = {form: {} for form in forms}
    for number in range(rounds + 1):
        for form in forms if number % 2 else reversed(forms):
            topic = f"{form}-{partitions}-{number}"
            with Admin(bootstrap_servers=brokers) as admin:
                admin.create_topic(topic, partitions=partitions)
            write_topic(spread_rows(ROWS, partitions), topic, brokers)
            figures = {
                **batch(spark, form, brokers, topic),
                **stream(spark, form, brokers, topic, partitions),
            }
            with Admin(bootstrap_servers=brokers) as admin:
                admin.delete_topics([topic])
            for name, value in figures.items() if number else ():
                found[form].setdefault(name, []).append(value)
    return found


def spread_rows(rows: int, partitions: int) -> Any:
    import pyarrow as pa

    numbers = pa.array([row % partitions for row in range(rows)], pa.int32())
    return plain_rows(0, rows).append_column("partition", numbers)


def reader(source: Any, form: str, brokers: str, topic: str) -> Any:
    return (
        source.format(form)
        .option("kafka.bootstrap.servers", brokers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("kafka.fetch.max.wait.ms", "10")
        .load()
    )


def batch(spark: Any, form: str, brokers: str, topic: str) -> dict[str, float]:
    before, begun = tree_cpu(), time.perf_counter()
    reader(spark.read, form, brokers, topic).write.format("noop").mode("overwrite").save()
    return {"batch s": time.perf_counter() - begun, "CPU": tree_cpu() - before}


def stream(spark: Any, form: str, brokers: str, topic: str, partitions: int) -> dict[str, float]:
    micro = spread_rows(MICRO_ROWS, min(partitions, MICRO_ROWS))
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as checkpoint:
        frame = reader(spark.readStream, form, brokers, topic)
        before, begun = tree_cpu(), time.perf_counter()
        query = frame.writeStream.format("noop").option("checkpointLocation", checkpoint).start()
        try:
            wait_for(query, ROWS)
            first, first_cpu = time.perf_counter() - begun, tree_cpu() - before
            rows, batches, last = ROWS, 4, query.lastProgress["batchId"]
            for number in range(batches + 1):
                if number == 1:
                    before, last = tree_cpu(), query.lastProgress["batchId"]
                write_topic(micro, topic, brokers)
                rows += MICRO_ROWS
                wait_for(query, rows)
            cpu = (tree_cpu() - before) / batches
            seen = [
                p["durationMs"]["triggerExecution"] / 1000
                for p in query.recentProgress
                if p["batchId"] > last and p["numInputRows"]
            ]
        finally:
            query.stop()
    return {
        "first batch s": first,
        "CPU ": first_cpu,
        "micro-batch s": statistics.median(seen),
        "CPU  ": cpu,
    }


def wait_for(query: Any, rows: int) -> None:
    """Wait until a streaming query has read `rows` rows."""
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
        raise SystemExit(f"spark_partitions: {error}") from None
