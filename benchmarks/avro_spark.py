"""Decode registry Avro to columns in Spark: with Penstock's data source, and with `from_avro` in the JVM.

Rows have eight fields. The JVM connector has its fastest settings (V2 reader, large fetches). SQL cuts off
the five-byte prefix of each value, and `from_avro` assumes one writer schema without checking it. CPU is that
of the JVM and all Python workers. A Python source that returns eight such columns without any work
(`empty_source.py`) is measured for comparison: no decoder can cost less. The second table shows writing the
same columns as Parquet: by the tasks that decode them, and by Spark's writer.

    python benchmarks/avro_spark.py [--quick] [--rounds N]
"""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

import empty_source
from broker_process import running_broker
from harness import Contestant, arguments, measure, report
from penstock import Admin, write_topic
from penstock.errors import PenstockError
from penstock.registry import Registry, Schema
from penstock.spark import from_schema, land
from spark_connector import CONNECTOR, fetched_jar
from spark_landing import reader, show_sizes, timed
from spark_read import EXPERT, PARTITIONS, consume, empty, jvm_connector, read
from spark_sessions import bench_session

FIELDS: list[tuple[str, Any]] = [
    ("id", "long"),
    ("user", "string"),
    ("amount", "double"),
    ("ok", "boolean"),
    ("quantity", "int"),
    ("city", ["null", "string"]),
    ("at", {"type": "long", "logicalType": "timestamp-millis"}),
    ("code", "string"),
]
SCHEMA = json.dumps(
    {"type": "record", "name": "Row", "fields": [{"name": n, "type": kind} for n, kind in FIELDS]}
)
COLUMNS = (
    "id long, user string, amount double, ok boolean, quantity int, city string, at timestamp, code string"
)
SUBJECT = "rows-value"
AVRO = f"org.apache.spark:spark-avro_2.13:{CONNECTOR}"


def main() -> None:
    options = arguments("Avro of a registry as columns in Spark", rounds=3)
    rows = 200_000 if options.quick else 3_000_000
    with (
        tempfile.TemporaryDirectory(prefix="penstock-bench-") as directory,
        running_broker() as brokers,
        Registry() as registry,
    ):
        number = registry.client().register(SUBJECT, Schema(SCHEMA))
        with Admin(bootstrap_servers=brokers) as admin:
            admin.create_topic("rows", partitions=PARTITIONS)
        values = encoded(number)
        write_topic((values for _ in range(rows // values.num_rows)), "rows", brokers)
        jars = jvm_connector(Path(directory))
        config = {
            "spark.sql.sources.useV1SourceList": "avro,csv,json,orc,parquet,text",
            "spark.sql.parquet.compression.codec": "zstd",
        }
        if jars:
            config["spark.jars"] = ",".join(map(str, [*jars, fetched_jar(AVRO)]))
        spark = bench_session("avro-spark", config)
        try:
            contestants = []
            if jars:
                theirs = partial(by_jvm, spark, brokers)
                contestants.append(
                    Contestant("JVM connector, V2, tuned, from_avro", partial(consume, theirs, rows))
                )
            given = {"value.format": "avro", "schema.registry.url": registry.url}
            ours = partial(read, spark, "penstock", brokers, "rows", COLUMNS, given)
            contestants.append(Contestant("penstock, in the source", partial(consume, ours, rows)))
            function = partial(by_function, spark, brokers, registry.url)
            contestants.append(Contestant("penstock, from_schema", partial(consume, function, rows)))
            empty_source.register(spark)
            nothing = partial(empty, spark, rows, COLUMNS, {"valueBytes": 40})
            contestants.append(Contestant("a Python source without work", partial(consume, nothing, rows)))
            measure(contestants, options.rounds)
            report(f"Avro, 8 fields, {rows:,} records", contestants)
            into = tables(spark, brokers, given, rows, Path(directory), with_jvm=bool(jars))
            measure(into, options.rounds)
            report(f"Avro, 8 fields, to Parquet with zstd, {rows:,} records", into)
            show_sizes(into, Path(directory))
        finally:
            spark.stop()


def tables(
    spark: Any, brokers: str, given: Mapping[str, str], rows: int, directory: Path, *, with_jvm: bool
) -> list[Contestant]:
    """Return contestants that write Parquet: in Penstock's decoding tasks, or with Spark's writer."""

    def landed(target: Path) -> None:
        options = {**given, "startingOffsets": "earliest"}
        land(
            reader(spark, brokers, "rows", options), target, columns=", ".join(name for name, _ in FIELDS)
        ).save()

    def written(frame: Callable[[], Any], target: Path) -> None:
        frame().write.mode("overwrite").parquet(str(target))

    found: dict[str, Callable[[Path], None]] = {
        "penstock, landed": landed,
        "penstock, Spark's writer": partial(
            written, partial(read, spark, "penstock", brokers, "rows", COLUMNS, given)
        ),
    }
    if with_jvm:
        found["JVM connector, V2, tuned, from_avro"] = partial(written, partial(by_jvm, spark, brokers))
    return [Contestant(name, partial(timed, write, directory / name, rows)) for name, write in found.items()]


def encoded(number: int, count: int = 50_000) -> pa.Table:
    """Return a table of Avro values, each with the prefix that names the id of its schema."""
    from fastavro import parse_schema, schemaless_writer

    schema, found = parse_schema(json.loads(SCHEMA)), []
    for n in range(count):
        out = io.BytesIO()
        row = {
            "id": n,
            "user": f"user-{n % 997}",
            "amount": n * 1.5,
            "ok": n % 2 == 0,
            "quantity": n % 7,
            "city": "Bern" if n % 3 else None,
            "at": 1_767_225_600_000 + n,
            "code": "abc",
        }
        schemaless_writer(out, schema, row)
        found.append(b"\0" + number.to_bytes(4, "big") + out.getvalue())
    return pa.table({"value": pa.array(found, pa.binary())})


def by_jvm(spark: Any, brokers: str) -> Any:
    from pyspark.sql.avro.functions import from_avro

    frame = read(spark, "kafka", brokers, "rows", None, EXPERT)
    bare = frame.selectExpr("substring(value, 6) as value")
    return bare.select(from_avro("value", SCHEMA).alias("row")).select("row.*")


def by_function(spark: Any, brokers: str, registry: str) -> Any:
    frame = read(spark, "penstock", brokers, "rows", "value binary", {})
    return frame.select(from_schema("value", "avro", registry, subject=SUBJECT).alias("row")).select("row.*")


if __name__ == "__main__":
    try:
        main()
    except (PenstockError, RuntimeError) as error:
        raise SystemExit(f"avro_spark: {error}") from None
