"""Measure the CPU for writing a topic as Parquet with Spark.

The contestants are Penstock's landing, where the tasks that decode records also write the files, and Spark's
Parquet writer after the JVM connector and after Penstock's source. All write seven columns with zstd.

CPU is that of the JVM and all Python workers (the driver waits). The JVM connector has its fastest settings:
V2 reader, large fetches.

    python benchmarks/spark_landing.py [--quick] [--rounds N]

PENSTOCK_BENCH_CONNECTOR=no leaves the JVM connector out, PENSTOCK_BENCH_ROWS is the number of records.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from broker_process import running_broker
from harness import Contestant, Outcome, arguments, measure, report
from penstock import Admin, write_topic
from penstock.errors import PenstockError
from penstock.spark import land
from process_trees import tree_cpu
from spark_read import EXPERT, PARTITIONS, jvm_connector, plain_rows
from spark_sessions import bench_session


def main() -> None:
    options = arguments("Spark: topic to Parquet", rounds=3)
    rows = 200_000 if options.quick else int(os.environ.get("PENSTOCK_BENCH_ROWS", 1_000_000))
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as directory, running_broker() as brokers:
        jars = jvm_connector(Path(directory))
        config = {
            "spark.sql.sources.useV1SourceList": "avro,csv,json,orc,parquet,text",
            "spark.sql.parquet.compression.codec": "zstd",
        }
        if jars:
            config["spark.jars"] = ",".join(map(str, jars))
        for topic, make in (("noise", plain_rows), ("json", json_rows)):
            with Admin(bootstrap_servers=brokers) as admin:
                admin.create_topic(topic, partitions=PARTITIONS)
            write_topic(
                (make(start, min(50_000, rows - start)) for start in range(0, rows, 50_000)), topic, brokers
            )
        spark = bench_session("spark-landing", config)
        try:
            for title, topic in (("100 B of noise", "noise"), ("100 B of JSON", "json")):
                contestants = sides(spark, brokers, topic, rows, Path(directory), with_jvm=bool(jars))
                measure(contestants, options.rounds)
                report(f"topic to Parquet, zstd, {title}, {rows:,} records", contestants)
                show_sizes(contestants, Path(directory))
        finally:
            spark.stop()


def sides(
    spark: Any, brokers: str, topic: str, rows: int, directory: Path, *, with_jvm: bool
) -> list[Contestant]:
    def landed(target: Path, **options: str) -> None:
        land(reader(spark, brokers, topic, {}), target, **options).save()

    def written(form: str, extra: Mapping[str, str], target: Path) -> None:
        frame = reader(spark, brokers, topic, extra).format(form).load()
        frame.write.mode("overwrite").parquet(str(target))

    found: dict[str, Callable[[Path], None]] = {
        "penstock, landed": landed,
        "penstock, landed by date": partial(landed, partition_by="date"),
        "penstock, Spark's writer": partial(written, "penstock", {}),
    }
    if with_jvm:
        found["JVM connector, V2, tuned"] = partial(written, "kafka", EXPERT)
    return [Contestant(name, partial(timed, write, directory / name, rows)) for name, write in found.items()]


def reader(spark: Any, brokers: str, topic: str, extra: Mapping[str, str]) -> Any:
    found = spark.read.option("kafka.bootstrap.servers", brokers).option("subscribe", topic)
    return found.options(**extra)


def timed(write: Callable[[Path], None], target: Path, rows: int) -> Outcome:
    shutil.rmtree(target, ignore_errors=True)
    before = tree_cpu()
    write(target)
    return Outcome(units=rows, cpu_seconds=tree_cpu() - before)


def show_sizes(contestants: list[Contestant], directory: Path) -> None:
    import pyarrow.dataset as ds

    for each in contestants:
        files = sorted((directory / each.name).rglob("*.parquet"))
        size = sum(file.stat().st_size for file in files)
        count = ds.dataset(files, format="parquet").count_rows()
        print(f"  {each.name}: {len(files)} files, {size / 1e6:.1f} MB, {count:,} rows")


def json_rows(start: int, count: int) -> pa.Table:
    dice = np.random.default_rng(start)
    places, amounts = dice.integers(0, 500, count), dice.integers(0, 10**6, count)
    values = [
        b'{"order":%d,"place":"store-%03d","amount":%d.%02d,"currency":"EUR","state":"new","note":"ordered"}'
        % (start + n, place, amount // 100, amount % 100)
        for n, (place, amount) in enumerate(zip(places.tolist(), amounts.tolist(), strict=True))
    ]
    keys = [b"store-%03d" % place for place in places.tolist()]
    return pa.table({"key": pa.array(keys, pa.binary()), "value": pa.array(values, pa.binary())})


if __name__ == "__main__":
    try:
        main()
    except PenstockError as error:
        raise SystemExit(f"spark_landing: {error}") from None
