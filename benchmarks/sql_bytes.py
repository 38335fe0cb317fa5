"""Compare bytes fetched and time of thirty SQL queries: `penstock.sql` and Spark's JVM connector.

    python benchmarks/sql_bytes.py [--quick] [--rounds N]

The broker is a separate process that counts the bytes of its Fetch responses. The connector runs the same
query as Spark SQL, after a warm-up, with large fetches; PENSTOCK_BENCH_CONNECTOR=no leaves it out.
PENSTOCK_BENCH_ROWS is the number of records (1,000,000; 100,000 with --quick); their timestamps are 10 ms
apart. Shares are fractions of the bytes that a full scan fetches.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

import psutil

from broker_process import free_port, running_broker
from harness import arguments, print_table
from penstock import sql
from spark_read import EXPERT, jvm_connector
from sql import PARTITIONS, START_MS, STEP_MS, TOPIC, fill

TEN_MINUTES_MS = 600_000

FETCHED = 'penstock_bytes_out_total{api="Fetch"}'


class Question(NamedTuple):
    """A SQL query as a template for both dialects.

    ``{o}`` stands for the offset column, ``{tN}`` for the time at N hundredths of the topic, and ``{late}``
    for ten minutes before its end.
    """

    title: str
    text: str
    dense: bool = False


def questions(rows: int) -> list[Question]:
    """Return thirty queries: by time, offset, partition, key and value; first and newest rows; aggregates."""
    mid = rows // PARTITIONS // 2
    t = f"from {TOPIC}"
    window = "timestamp >= {t50} and timestamp < {t51}"
    return [
        Question("the last ten minutes", f"select count(*) {t} where timestamp >= {{late}}"),
        Question("the last hundredth", f"select count(*) {t} where timestamp >= {{t99}}"),
        Question("its values", f"select sum(length(value)) {t} where timestamp >= {{t99}}"),
        Question("the last half", f"select count(*) {t} where timestamp >= {{t50}}"),
        Question("a hundredth in the middle", f"select count(*) {t} where {window}"),
        Question("nothing yet: the future", f"select count(*) {t} where timestamp >= {{t200}}"),
        Question("one time exactly", f"select count(*) {t} where timestamp = {{t99}}"),
        Question("late, one partition", f"select count(*) {t} where timestamp >= {{t90}} and partition = 1"),
        Question("late, and text", f"select count(*) {t} where timestamp >= {{t99}} and value like '%Bern%'"),
        Question(
            "late or early partition", f"select count(*) {t} where timestamp >= {{t99}} or partition = 9"
        ),
        Question("one partition", f"select count(*) {t} where partition = 2"),
        Question("two partitions", f"select count(*) {t} where partition in (0, 3)"),
        Question("no such partition", f"select count(*) {t} where partition = 77"),
        Question(
            "a hundred offsets", f"select sum(length(value)) {t} where {{o}} between {mid} and {mid + 99}"
        ),
        Question("one record", f"select max(value) {t} where partition = 1 and {{o}} = {mid}"),
        Question("three offsets", f"select count(*) {t} where {{o}} in ({mid}, {mid + 5}, {mid + 9})"),
        Question("the first thousand offsets", f"select count(*) {t} where {{o}} < 1000"),
        Question("offsets from the middle on", f"select count(*) {t} where {{o}} >= {mid}"),
        Question("beyond the end", f"select count(*) {t} where {{o}} > {rows * 2}"),
        Question("all but one partition", f"select count(*) {t} where partition <> 0"),
        Question("first ten", f"select value {t} limit 10"),
        Question("first ten of a partition", f"select value {t} where partition = 2 limit 10"),
        Question("newest ten", f"select value {t} order by {{o}} desc limit 10"),
        Question("count of a dense topic", f"select count(*) {t}", True),
        Question("its last offsets", f"select partition, max({{o}}) {t} group by partition", True),
        Question("count", f"select count(*) {t}"),
        Question("text in all values", f"select count(*) {t} where value like '%Bern%'"),
        Question("bytes of all values", f"select sum(length(value)) {t}"),
        Question("records a partition", f"select partition, count(*) {t} group by partition"),
        Question("first and last time", f"select min(timestamp), max(timestamp) {t}"),
    ]


def spelt(text: str, rows: int, *, spark: bool) -> str:
    """Return a query in the dialect of Spark SQL or of DuckDB."""

    def moment(ms: int) -> str:
        ms += START_MS
        return f"timestamp_millis({ms})" if spark else f"make_timestamptz({ms * 1000})"

    times = {f"t{n}": moment(rows * STEP_MS * n // 100) for n in (50, 51, 90, 99, 200)}
    times["late"] = moment(rows * STEP_MS - TEN_MINUTES_MS)
    made = text.format(o="`offset`" if spark else '"offset"', **times)
    return made.replace("value like", "cast(value as string) like") if spark else made


class Meter:
    """A reader of the broker's metric for the bytes sent in Fetch responses."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}/metrics"

    def bytes(self) -> int:
        page = urllib.request.urlopen(self._url).read().decode()
        found = [line.split()[-1] for line in page.splitlines() if line.startswith(FETCHED)]
        return int(float(found[0])) if found else 0


class Cost(NamedTuple):
    """The cost of one query: bytes over the wire, and seconds."""

    size: int
    seconds: float


def measured(meter: Meter, work: Callable[[], object], rounds: int) -> Cost:
    costs = []
    for _ in range(rounds):
        before, began = meter.bytes(), time.perf_counter()
        work()
        seconds = time.perf_counter() - began
        costs.append(Cost(meter.bytes() - before, seconds))
    return Cost(min(cost.size for cost in costs), statistics.median(cost.seconds for cost in costs))


def with_connector(brokers: str, jars: list[Path]) -> Any:
    from spark_sessions import bench_session

    spark = bench_session("sql-bytes", {"spark.jars": ",".join(map(str, jars))})
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", brokers).option("subscribe", TOPIC)
    reader.options(**EXPERT).load().createOrReplaceTempView(TOPIC)
    return spark


def main() -> None:
    options = arguments("Bytes that questions read", rounds=3)
    rows = int(os.environ.get("PENSTOCK_BENCH_ROWS", 100_000 if options.quick else 1_000_000))
    port = free_port()
    with (
        tempfile.TemporaryDirectory(prefix="penstock-bench-") as directory,
        running_broker("log.retention.ms=-1", f"penstock.metrics.port={port}") as brokers,
    ):
        jars = jvm_connector(Path(directory))
        began = time.perf_counter()
        fill(brokers, rows)
        written_s = time.perf_counter() - began
        print(f"{rows:,} records written in {written_s:.0f} s; load {psutil.getloadavg()[0]:.1f}")
        meter = Meter(port)
        whole = measured(meter, lambda: sql(f"select sum(length(value)) from {TOPIC}", brokers), 1).size
        print(f"{whole / 1e6:,.1f} MB for all records")
        spark = with_connector(brokers, jars) if jars else None
        shown = []
        for question in questions(rows):
            ours = measured(meter, partial(asked, question, brokers, rows), options.rounds)
            row = [question.title, *cells(ours, whole)]
            if spark is not None:
                text = spelt(question.text, rows, spark=True)
                theirs = measured(meter, partial(in_spark, spark, text), options.rounds)
                row += cells(theirs, whole)
            shown.append(row)
        head = ["Question", "penstock.sql, bytes", "s"]
        print_table("Share of all bytes", head + (["connector, bytes", "s"] if spark else []), shown)
        if spark is not None:
            spark.stop()


def asked(question: Question, brokers: str, rows: int) -> object:
    """Run a query with `penstock.sql`, including the requests for the topic's metadata."""
    return sql(spelt(question.text, rows, spark=False), brokers, dense=question.dense)


def in_spark(spark: Any, text: str) -> object:
    return spark.sql(text).collect()


def cells(cost: Cost, whole: int) -> list[str]:
    return [f"{cost.size / whole:.2%}", f"{cost.seconds:.2f}"]


if __name__ == "__main__":
    main()
