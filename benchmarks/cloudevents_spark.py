"""Decode CloudEvents to columns in Spark: with Penstock's source, and with SQL after the JVM connector.

The JVM connector has its fastest settings (V2 reader, large fetches). SQL does less work: it extracts
attributes from headers or JSON without validating them. Both produce columns of the same types. CPU is that
of the JVM and all Python workers, including some 0.3 seconds for planning a query in the JVM.

    python benchmarks/cloudevents_spark.py [--quick] [--rounds N]
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from broker_process import running_broker
from harness import Contestant, arguments, measure, report
from penstock import Admin, write_topic
from penstock.cloudevents import encode_events
from penstock.errors import PenstockError
from spark_read import ATTRIBUTES, EXPERT, PARTITIONS, consume, event_columns, event_rows, jvm_connector, read
from spark_sessions import bench_session

SCHEMA = ", ".join(f"{name} {'timestamp' if name == 'time' else 'string'}" for name in ATTRIBUTES)


def main() -> None:
    options = arguments("CloudEvents as columns in Spark", rounds=3)
    rows = 200_000 if options.quick else 3_000_000
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as directory, running_broker() as brokers:
        jars = jvm_connector(Path(directory))
        config = {"spark.sql.sources.useV1SourceList": "avro,csv,json,orc,parquet,text"}
        if jars:
            config["spark.jars"] = ",".join(map(str, jars))
        for topic, make in (("binary", event_rows), ("structured", structured_rows)):
            with Admin(bootstrap_servers=brokers) as admin:
                admin.create_topic(topic, partitions=PARTITIONS)
            write_topic(
                (make(start, min(50_000, rows - start)) for start in range(0, rows, 50_000)), topic, brokers
            )
        spark = bench_session("cloudevents-spark", config)
        try:
            for mode, columns, data, extra in (
                ("binary", event_columns, "binary", {"includeHeaders": "true"}),
                ("structured", json_columns, "string", {}),
            ):
                contestants = []
                if jars:
                    frame = partial(by_sql, spark, brokers, mode, columns, {**EXPERT, **extra})
                    contestants.append(
                        Contestant("JVM connector, V2, tuned, with SQL", partial(consume, frame, rows))
                    )
                ours = partial(
                    read,
                    spark,
                    "penstock",
                    brokers,
                    mode,
                    f"{SCHEMA}, data {data}",
                    {"cloudevents": "columns"},
                )
                contestants.append(Contestant("penstock, in the source", partial(consume, ours, rows)))
                measure(contestants, options.rounds)
                report(f"{mode} mode, 6 attributes and data, {rows:,} records", contestants)
        finally:
            spark.stop()


def structured_rows(start: int, count: int) -> pa.Table:
    """Return records of events in structured mode, with 100 bytes of JSON as their data."""
    numbers = range(start, start + count)
    text = "x" * 60
    events = pa.table(
        {
            "id": [str(n) for n in numbers],
            "source": ["/bench"] * count,
            "type": ["org.example.reading"] * count,
            "subject": [f"sensor-{n % 100}" for n in numbers],
            "time": [f"2026-01-01T00:{n // 60 % 60:02}:{n % 60:02}Z" for n in numbers],
            "datacontenttype": ["application/json"] * count,
            "data": pa.array([b'{"reading": %d.5, "text": "%s"}' % (n, text.encode()) for n in numbers]),
        }
    )
    return encode_events(events, mode="structured")


def by_sql(spark: Any, brokers: str, topic: str, columns: Any, options: dict[str, str]) -> Any:
    return columns(read(spark, "kafka", brokers, topic, None, options))


def json_columns(frame: Any) -> Any:
    """Extract the attributes of structured events with SQL; `data` becomes a JSON text."""
    parsed = frame.selectExpr(f"from_json(cast(value as string), '{SCHEMA}, data string') as event")
    return parsed.selectExpr("event.*")


if __name__ == "__main__":
    try:
        main()
    except PenstockError as error:
        raise SystemExit(f"cloudevents_spark: {error}") from None
