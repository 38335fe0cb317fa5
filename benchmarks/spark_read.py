"""Measure Spark's CPU for reading a topic, with Penstock's source and with the JVM connector.

CPU is that of the JVM and all Python workers (the driver's own Python waits). The JVM connector has its
fastest settings: V2 reader, large fetches. Rows go to Spark's `noop` sink, which discards them.

    python benchmarks/spark_read.py [--quick] [--rounds N]

A Python source that only returns one batch repeatedly (`empty_source.py`) is measured too: no Python source
can cost less.

PENSTOCK_BENCH_CONNECTOR=no leaves the JVM connector out. PENSTOCK_BENCH_ROWS is the number of records in each
topic (1,000,000). PENSTOCK_BENCH_SCENARIOS is a list of the scenarios to run: names in `TOPICS`, and `value`.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import empty_source
from broker_process import running_broker
from harness import Contestant, Outcome, arguments, measure, report
from penstock import Admin, write_topic
from penstock.errors import PenstockError
from process_trees import tree_cpu
from spark_connector import connector_jars
from spark_sessions import bench_session

PARTITIONS = 4
HEADER = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
HEADERS = pa.list_(pa.field("element", HEADER))
EXPERT = {
    "kafka.max.partition.fetch.bytes": str(8 << 20),
    "kafka.max.poll.records": "5000",
    "kafka.fetch.max.bytes": str(64 << 20),
    "kafka.receive.buffer.bytes": str(4 << 20),
    "kafka.fetch.max.wait.ms": "10",
}
ATTRIBUTES = ("id", "source", "specversion", "type", "subject", "time")


def main() -> None:
    options = arguments("Spark batch read", rounds=3)
    rows = int(os.environ.get("PENSTOCK_BENCH_ROWS", 200_000 if options.quick else 1_000_000))
    wanted = os.environ.get("PENSTOCK_BENCH_SCENARIOS", "plain,value,headers,events,kilobyte").split(",")
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as directory, running_broker() as brokers:
        jars = jvm_connector(Path(directory))
        config = {"spark.sql.sources.useV1SourceList": "avro,csv,json,orc,parquet,text"}
        if jars:
            config["spark.jars"] = ",".join(map(str, jars))
        for topic, make in TOPICS.items():
            if topic not in wanted and not (topic == "plain" and "value" in wanted):
                continue
            with Admin(bootstrap_servers=brokers) as admin:
                admin.create_topic(topic, partitions=PARTITIONS)
            write_topic(
                (make(start, min(50_000, rows - start)) for start in range(0, rows, 50_000)), topic, brokers
            )
        spark = bench_session("spark-read", config)
        try:
            empty_source.register(spark)
            for name, title, contestants in scenarios(spark, brokers, rows, with_jvm=bool(jars)):
                if name in wanted:
                    measure(contestants, options.rounds)
                    report(f"{title}, {rows:,} records", contestants)
        finally:
            spark.stop()


def jvm_connector(directory: Path) -> list[Path]:
    if os.environ.get("PENSTOCK_BENCH_CONNECTOR") == "no":
        return []
    try:
        return connector_jars(directory)
    except RuntimeError as error:
        print(f"without the JVM connector: {error}")
        return []


def scenarios(
    spark: Any, brokers: str, rows: int, *, with_jvm: bool
) -> list[tuple[str, str, list[Contestant]]]:
    def ours(name: str, topic: str, schema: str | None = None, **extra: str) -> Contestant:
        frame = partial(read, spark, "penstock", brokers, topic, schema, extra)
        return Contestant(name, partial(consume, frame, rows))

    def jvm(
        name: str, topic: str, columns: Callable[[Any], Any] | None = None, **extra: str
    ) -> list[Contestant]:
        def frame() -> Any:
            found = read(spark, "kafka", brokers, topic, None, {**EXPERT, **extra})
            return columns(found) if columns else found

        return [Contestant(name, partial(consume, frame, rows))] if with_jvm else []

    def nothing(schema: str | None = None, **shape: int) -> Contestant:
        frame = partial(empty, spark, rows, schema, {"valueBytes": 100, **shape})
        return Contestant("a Python source without work", partial(consume, frame, rows))

    with_headers = {"includeHeaders": "true"}
    return [
        (
            "plain",
            "7 columns, 100 B values",
            [ours("penstock", "plain"), *jvm("JVM connector, V2, tuned", "plain"), nothing()],
        ),
        (
            "value",
            "value only",
            [
                ours("penstock", "plain", "value binary"),
                ours("penstock, as string", "plain", "value string"),
                nothing("value binary"),
                *jvm("JVM connector, V2, tuned", "plain", lambda frame: frame.select("value")),
            ],
        ),
        (
            "headers",
            "7 columns and 6 headers",
            [
                ours("penstock", "headers", **with_headers),
                *jvm("JVM connector, V2, tuned", "headers", **with_headers),
                nothing(headers=6),
            ],
        ),
        (
            "events",
            "CloudEvents, binary mode: 6 attributes and data",
            [
                ours(
                    "penstock",
                    "events",
                    "id string, source string, specversion string, type string, subject string, "
                    "time timestamp, data binary",
                    cloudevents="columns",
                ),
                *jvm("JVM connector, V2, tuned", "events", event_columns, **with_headers),
            ],
        ),
        (
            "kilobyte",
            "7 columns, 1 KiB values",
            [
                ours("penstock", "kilobyte"),
                *jvm("JVM connector, V2, tuned", "kilobyte"),
                nothing(valueBytes=1024),
            ],
        ),
    ]


def read(
    spark: Any, form: str, brokers: str, topic: str, schema: str | None, extra: Mapping[str, str]
) -> Any:
    reader = spark.read.format(form).option("kafka.bootstrap.servers", brokers).option("subscribe", topic)
    reader = reader.options(**extra)
    return (reader.schema(schema) if schema else reader).load()


def empty(spark: Any, rows: int, schema: str | None, shape: Mapping[str, int]) -> Any:
    """Return a data frame of the source without work. `shape` has the source's options for a row."""
    reader = spark.read.format("empty").options(rows=rows, **shape)
    return (reader.schema(schema) if schema else reader).load()


def event_columns(frame: Any) -> Any:
    """Extract CloudEvents attributes from record headers with SQL."""
    picked = [
        f"cast(element_at(filter(headers, h -> h.key = 'ce_{name}'), 1).value as string) as {name}"
        for name in ATTRIBUTES
    ]
    picked[-1] = f"cast({picked[-1].removesuffix(' as time')} as timestamp) as time"
    return frame.selectExpr(*picked, "value as data")


def consume(frame: Callable[[], Any], rows: int) -> Outcome:
    before = tree_cpu()
    frame().write.format("noop").mode("overwrite").save()
    return Outcome(units=rows, cpu_seconds=tree_cpu() - before)


def plain_rows(start: int, count: int, value_bytes: int = 100) -> pa.Table:
    keys = pa.array([b"key-%012d" % n for n in range(start, start + count)], pa.binary())
    noise = np.random.default_rng(start).integers(0, 256, count * value_bytes, np.uint8)
    ends = np.arange(0, (count + 1) * value_bytes, value_bytes, dtype=np.int32)
    values = pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(ends), pa.py_buffer(noise)])
    return pa.table({"key": keys, "value": values})


def kilobyte_rows(start: int, count: int) -> pa.Table:
    return plain_rows(start, count, 1024)


def header_rows(start: int, count: int) -> pa.Table:
    headers = pa.array([[{"key": f"header-{n}", "value": b"v" * 10} for n in range(6)]] * count, HEADERS)
    return plain_rows(start, count).append_column("headers", headers)


def event_rows(start: int, count: int) -> pa.Table:
    constant = [("ce_specversion", b"1.0"), ("ce_source", b"/bench"), ("ce_type", b"org.example.reading")]
    headers = pa.array(
        [
            [
                *({"key": name, "value": value} for name, value in constant),
                {"key": "ce_id", "value": b"%d" % n},
                {"key": "ce_subject", "value": b"sensor-%d" % (n % 100)},
                {"key": "ce_time", "value": b"2026-01-01T00:%02d:%02dZ" % (n // 60 % 60, n % 60)},
                {"key": "content-type", "value": b"application/json"},
            ]
            for n in range(start, start + count)
        ],
        HEADERS,
    )
    return plain_rows(start, count).append_column("headers", headers)


TOPICS: Mapping[str, Callable[[int, int], pa.Table]] = {
    "plain": plain_rows,
    "kilobyte": kilobyte_rows,
    "headers": header_rows,
    "events": event_rows,
}
"""A dict from a scenario to a function that makes its records: a table from a first number and a count."""


if __name__ == "__main__":
    try:
        main()
    except PenstockError as error:
        raise SystemExit(f"spark_read: {error}") from None
