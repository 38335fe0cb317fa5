"""Read millions of rows with the JVM connector and with Penstock's source; print hash sums per partition.

    python spark_many_rows_query.py DIRECTORY JARS ROWS

The program writes a topic of four partitions in every codec, with headers on every fourth batch. It prints
both sources' sums for comparison.
"""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from penstock import Admin, Broker, write_topic
from penstock.spark import session

PORTION = 50_000
PARTITIONS = 4
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def portion(start: int, count: int) -> pa.Table:
    """Return a table of rows: every third key is null, and values have 0 to 199 random bytes."""
    rng = np.random.default_rng(start)
    sizes = rng.integers(0, 200, count)
    ends = np.concatenate(([0], np.cumsum(sizes))).astype(np.int32)
    noise = rng.integers(0, 256, int(ends[-1]), np.uint8)
    values = pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(ends), pa.py_buffer(noise)])
    keys = pa.array([None if n % 3 == 0 else b"key-%d" % n for n in range(start, start + count)], pa.binary())
    table = pa.table({"key": keys, "value": values})
    if start // PORTION % 4 == 0:
        several = [[{"key": f"h{n}", "value": b"v%d" % n} for n in range(m)] or None for m in range(3)]
        headers = pa.array(list(itertools.islice(itertools.cycle(several), count)), HEADERS)
        return table.append_column("headers", headers)
    return table


def read(spark: Any, form: str, servers: str) -> list[list[int]]:
    """Return for each partition its number, its number of rows, and a sum of hashes of all columns."""
    from pyspark.sql import functions as f

    frame = (
        spark.read.format(form)
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", "many")
        .option("includeHeaders", "true")
        .load()
    )
    # Halves of a hash: a sum of whole ones would overflow, which is an error.
    hashed = f.xxhash64(*(frame[name] for name in sorted(frame.columns)))
    sums = f.count("*"), f.sum(f.shiftrightunsigned(hashed, 32)), f.sum(hashed.bitwiseAND(0xFFFFFFFF))
    return sorted([list(row) for row in frame.groupBy("partition").agg(*sums).collect()])


def main(directory: Path, jars: str, rows: int) -> None:
    config = {"spark.jars": jars}
    spark = session("many", "local[2]", config=config)
    try:
        with Broker(directory / "data") as broker:
            servers = broker.bootstrap_servers
            with Admin(servers) as admin:
                admin.create_topic("many", PARTITIONS)
            codecs = itertools.cycle(CODECS)
            for start in range(0, rows, PORTION):
                table = portion(start, min(PORTION, rows - start))
                write_topic(table, "many", servers, config={"compression.type": next(codecs)})
            found = {form: read(spark, form, servers) for form in ("kafka", "penstock")}
    finally:
        spark.stop()
    print("ACCOUNTS", json.dumps(found), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
