"""Measure SQL queries of a topic: bytes fetched and time, against a full scan and DuckDB with Parquet.

The broker runs in this process, so that the bytes of its responses can be counted. "The last ten minutes" are
a hundredth of the topic's time range. The line with bytes shows the fraction of a full scan that a query
fetches.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from harness import Contestant, Outcome, arguments, measure, print_table, report
from penstock import Admin, Broker, Producer, topic_dataset
from penstock.queries.dataset import RecordDataset
from penstock.queries.watching import Watch

TOPIC, PARTITIONS = "long", 4
STEP_MS = 10
BATCH = 500
START_MS = 1_767_225_600_000


def table(first: int, count: int) -> pa.Table:
    """Return records numbered from `first`: a hundred bytes each, with timestamps 10 ms apart."""
    numbers = np.arange(first, first + count)
    texts = [
        b'{"order": %d, "city": "%s", "note": "%064d"}' % (n, b"Ulm" if n % 50 else b"Bern", n)
        for n in numbers
    ]
    return pa.table(
        {
            "value": pa.array(texts, pa.binary()),
            "timestamp": pa.array(START_MS + numbers * STEP_MS, pa.timestamp("ms", tz="UTC")),
            "partition": pa.array((numbers // BATCH) % PARTITIONS, pa.int32()),
        }
    )


def fill(servers: str, rows: int) -> None:
    """Write the topic in batches of the size that producers make."""
    with Admin(servers) as admin:
        admin.create_topic(TOPIC, PARTITIONS, config={"retention.ms": "-1"})
    with Producer(servers, config={"compression.type": "lz4"}) as producer:
        for first in range(0, rows, 100_000):
            piece = table(first, min(100_000, rows - first))
            for start in range(0, piece.num_rows, BATCH * PARTITIONS):
                producer.send_arrow(TOPIC, piece.slice(start, BATCH * PARTITIONS))
            producer.flush()


def ask(dataset: RecordDataset, query: str) -> tuple[list[tuple[object, ...]], int]:
    """Run a query; return its rows, and the size of the batches that were fetched for it."""
    watch = Watch()
    connection = duckdb.connect()
    connection.register("t", dataset.watched(watch))
    found = connection.sql(query).fetchall()
    connection.close()
    return found, watch.wire_bytes


def first_answer(servers: str) -> None:
    """Return the CPU of a `penstock sql` process that answers one query and ends."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    words = [
        "-m",
        "penstock",
        "sql",
        "-b",
        servers,
        "-c",
        f'select count(*) from {TOPIC} where "offset" < 100',
    ]
    subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL, env=dict(os.environ))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print_table("The first answer", ("", "CPU s"), [("`penstock sql -c` in a new process", f"{cpu:.2f}")])


def main() -> None:
    options = arguments("Questions to a topic", rounds=3)
    rows = 200_000 if options.quick else 10_000_000
    since_ms = START_MS + rows * STEP_MS * 99 // 100
    late = f"make_timestamptz({since_ms * 1000})"
    questions = {
        "all records": "select count(*) from t",
        "the last hundredth by time": f"select count(*) from t where timestamp >= {late}",
        "a hundred offsets": 'select count(*) from t where partition = 1 and "offset" between 1000 and 1099',
        "one partition": "select count(*) from t where partition = 2",
        "text in values": "select count(*) from t where value like '%Bern%'",
    }
    with (
        Broker(data_dir=tempfile.mkdtemp(), log_retention_ms=-1) as broker,
        tempfile.TemporaryDirectory() as place,
    ):
        fill(broker.bootstrap_servers, rows)
        dataset = topic_dataset(TOPIC, broker.bootstrap_servers, text=True)
        _, whole = ask(dataset, questions["all records"])
        print(f"{rows:,} records, {whole / 1e6:,.0f} MB on the wire for all of them")
        for name, query in questions.items():
            found, size = ask(dataset, query)
            print(f"  {name:<28} {found[0][0]:>12,} rows  {size / whole:8.2%} of the bytes")
        watch = Watch()
        dataset.watched(watch).head(10)
        print(f"  {'the first ten':<28} {10:>12,} rows  {watch.wire_bytes / whole:8.2%} of the bytes")

        parquet = Path(place) / "copy.parquet"
        pq.write_table(dataset.to_table(columns=["value"]), parquet, compression="lz4")
        fetched = topic_dataset(TOPIC, broker.bootstrap_servers)

        def fetch() -> Outcome:
            return Outcome(sum(batch.num_rows for batch in fetched.to_batches(columns=["value"])))

        def over_parquet() -> Outcome:
            duckdb.sql(f"select count(*) from '{parquet}' where value like '%Bern%'").fetchall()
            return Outcome(rows)

        contestants = [
            Contestant("fetch and decode values", fetch, rows, whole),
            Contestant("DuckDB over Parquet", over_parquet, rows, whole),
            Contestant(
                "DuckDB over the topic", asking(dataset, questions["text in values"], rows), rows, whole
            ),
            Contestant(
                "the last hundredth",
                asking(dataset, questions["the last hundredth by time"], rows),
                rows,
                whole,
            ),
        ]
        measure(contestants, options.rounds)
        report("value like '%Bern%'", contestants)
        first_answer(broker.bootstrap_servers)


def asking(dataset: RecordDataset, query: str, rows: int) -> Callable[[], Outcome]:
    def run() -> Outcome:
        ask(dataset, query)
        return Outcome(rows)

    return run


if __name__ == "__main__":
    main()
