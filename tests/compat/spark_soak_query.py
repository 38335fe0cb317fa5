"""Run a query on a Spark cluster that copies each record of topic `in` to topic `out` exactly once.

    python spark_soak_query.py MASTER SERVERS DIRECTORY

The program ends when the file `stop` appears in DIRECTORY, or when the query ends, and prints the query's
outcome.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from penstock.spark import query_name, reason, session


def main(master: str, servers: str, directory: Path) -> None:
    config = {
        "spark.executor.memory": "512m",
        # Both workers are killed again and again: lost tasks and executors are no fault of the query.
        "spark.task.maxFailures": "100",
        "spark.deploy.maxExecutorRetries": "-1",
        "spark.network.timeout": "40s",
        "spark.network.timeoutInterval": "10s",
        "spark.executor.heartbeatInterval": "2s",
    }
    spark = session("soak", master, config=config)
    options = {"kafka.bootstrap.servers": servers}
    stream = (
        spark.readStream.format("penstock")
        .options(**options, subscribe="in", startingOffsets="earliest", maxOffsetsPerTrigger=2000)
        .schema("key binary, value binary")
        .load()
    )
    query = (
        stream.writeStream.format("penstock")
        .options(**options, topic="out", exactlyOnce=True)
        .option("checkpointLocation", str(directory / "checkpoint"))
        .queryName(query_name(stream))
        .start()
    )
    while query.isActive and not (directory / "stop").exists():
        time.sleep(0.2)
    error = query.exception()
    batches = query.lastProgress["batchId"] if query.lastProgress else None
    query.stop()
    told = {"name": query.name, "batches": batches, "error": None if error is None else reason(error)}
    spark.stop()
    print("ACCOUNTS", json.dumps(told), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
