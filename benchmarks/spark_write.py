"""Measure Spark's CPU for writing a topic: at least once, exactly once, and with the JVM connector.

In a "job" four tasks write the rows of a cached data frame to a topic of four partitions. A "micro-batch" is
one batch of a stream that reads one topic and writes another. CPU is that of the JVM and all Python workers.

    python benchmarks/spark_write.py [--quick] [--rounds N]

PENSTOCK_BENCH_CONNECTOR=no leaves the JVM connector out.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from broker_process import running_broker
from harness import Contestant, Outcome, arguments, measure, report
from penstock import Admin, write_topic
from process_trees import tree_cpu
from spark_read import PARTITIONS, jvm_connector, plain_rows, read
from spark_sessions import bench_session

ONCE = {"exactlyOnce": "true"}


def main() -> None:
    options = arguments("Spark write", rounds=3)
    rows = 200_000 if options.quick else 1_000_000
    numbers = itertools.count()
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as directory, running_broker() as brokers:
        jars = jvm_connector(Path(directory))
        config = {"spark.jars": ",".join(map(str, jars))} if jars else {}
        with Admin(bootstrap_servers=brokers) as admin:
            for topic in ("source", "sink"):
                admin.create_topic(topic, partitions=PARTITIONS)
        write_topic(
            (plain_rows(start, min(50_000, rows - start)) for start in range(0, rows, 50_000)),
            "source",
            brokers,
        )
        spark = bench_session("spark-write", config)
        try:
            cached = read(spark, "penstock", brokers, "source", "key binary, value binary", {}).cache()
            assert cached.count() == rows

            def job(form: str, extra: Mapping[str, str]) -> None:
                target(cached.write.format(form), brokers, extra).mode("append").save()

            def stream(form: str, extra: Mapping[str, str]) -> None:
                frame = (
                    spark.readStream.format(form)
                    .option("kafka.bootstrap.servers", brokers)
                    .option("subscribe", "source")
                    .option("startingOffsets", "earliest")
                )
                frame = frame.schema("key binary, value binary") if form == "penstock" else frame
                rows_read = frame.load().select("key", "value")
                checkpoint = str(Path(directory) / f"checkpoint-{next(numbers)}")
                writer = target(rows_read.writeStream.format(form), brokers, extra)
                writer = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True)
                writer.start().awaitTermination()

            for title, way in (("one job", job), ("a stream of one batch", stream)):
                contestants = [
                    contestant("penstock, exactly once", partial(way, "penstock", ONCE), rows),
                    contestant("penstock, at least once", partial(way, "penstock", {}), rows),
                ]
                if jars:
                    contestants.append(
                        contestant("JVM connector, at least once", partial(way, "kafka", {}), rows)
                    )
                measure(contestants, options.rounds)
                report(f"{title}, {rows:,} records of 100 B", contestants)
        finally:
            spark.stop()


def target(writer: Any, brokers: str, extra: Mapping[str, str]) -> Any:
    return writer.option("kafka.bootstrap.servers", brokers).option("topic", "sink").options(**extra)


def contestant(name: str, way: Callable[[], None], rows: int) -> Contestant:
    def run() -> Outcome:
        before = tree_cpu()
        way()
        return Outcome(units=rows, cpu_seconds=tree_cpu() - before)

    return Contestant(name, run)


if __name__ == "__main__":
    main()
