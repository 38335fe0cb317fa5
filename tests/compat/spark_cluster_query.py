"""Read and write with a Spark cluster, in batches and streams, at a broker with TLS and SASL.

    python spark_cluster_query.py MASTER DIRECTORY SECONDS

For SECONDS the program writes numbers while a stream copies them. Meanwhile it adds partitions, cuts
connections, and creates the file `kill` in DIRECTORY, on which the caller kills a worker. Every number must
arrive exactly once. The program prints its results as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pyarrow as pa

from penstock import Admin, read_topic, write_topic
from penstock.broker.security.throwaway import Security
from penstock.spark import ParquetTable, session
from penstock.testing import KafkaBroker

PATIENCE_S = 240.0
PORTION = 500


def main(master: str, directory: Path, seconds: float) -> None:
    accounts: dict[str, object] = {}
    with KafkaBroker(security=Security("SASL_SSL", users={"ann": "secret"}), log_retention_ms=-1) as broker:
        settings = broker.client_settings()
        options = {f"kafka.{name}": value for name, value in settings.items()}
        brokers = settings["bootstrap.servers"]
        secured = {name: value for name, value in settings.items() if name != "bootstrap.servers"}
        with Admin(config=settings) as admin:
            admin.create_topic("in", partitions=4)
            admin.create_topic("out", partitions=2)
            admin.create_topic("exact", partitions=2)

        def write(first: int) -> None:
            texts = pa.array([b"%d" % n for n in range(first, first + PORTION)], pa.binary())
            write_topic(pa.table({"value": texts}), "in", bootstrap_servers=brokers, config=secured)

        write(0)
        spark = session(
            "cluster", master, config={"spark.executor.memory": "512m", "spark.task.maxFailures": "8"}
        )
        source = spark.read.format("penstock").options(**options)
        frame = source.option("subscribe", "in").option("minPartitions", 8).load()
        accounts["batch"] = frame.count()
        frame.select("value").write.format("penstock").options(**options).option("topic", "out").mode(
            "append"
        ).save()
        accounts["written"] = source.option("subscribe", "out").load().count()
        hosts = spark.sparkContext._jsc.sc().statusTracker().getExecutorInfos()
        accounts["executors"] = len(hosts) - 1
        into = spark.readStream.format("penstock").options(**options).option("subscribe", "in")
        exact = (
            into.option("startingOffsets", "earliest")
            .schema("value binary")
            .load()
            .writeStream.format("penstock")
            .options(**options, topic="exact", exactlyOnce=True)
            .option("checkpointLocation", str(directory / "exact"))
            .trigger(availableNow=True)
            .start()
        )
        exact.awaitTermination(PATIENCE_S)
        copied = read_topic("exact", brokers, config=secured, isolation="read_committed")["value"].to_pylist()
        accounts["exactly once"] = sorted(map(int, copied)) == list(range(PORTION))
        table = ParquetTable(directory / "table")
        stream = (
            spark.readStream.format("penstock")
            .options(**options)
            .option("subscribe", "in")
            .option("startingOffsets", "earliest")
            .schema("value string")
            .load()
        )
        query = stream.writeStream.foreachBatch(table.write).option(
            "checkpointLocation", str(directory / "checkpoint")
        )
        running = query.start()
        count, steps = PORTION, 0
        until = time.monotonic() + seconds
        while time.monotonic() < until or steps < 2:
            write(count)
            count, steps = count + PORTION, steps + 1
            if steps == 2:
                with Admin(config=settings) as admin:
                    admin.create_partitions("in", 6)
            if seconds and steps % 20 == 5:
                broker.faults.close("Fetch", times=3)
            if seconds and steps == 10:
                (directory / "kill").touch()
            time.sleep(0.5 if seconds else 0.1)
        values = arrived(table, running, count)
        accounts["stream"] = values == list(range(count))
        accounts["counts"] = [len(values), len(set(values)), count]
        error = running.exception()
        accounts["error"] = str(error)[:2000] if error else None
        running.stop()
        spark.stop()
    print("ACCOUNTS", json.dumps(accounts), flush=True)


def arrived(table: ParquetTable, running: object, count: int) -> list[int]:
    """Return the sorted numbers in the output table.

    The function returns as soon as there are `count` numbers, the query has ended, or PATIENCE_S seconds
    have passed.
    """
    deadline = time.monotonic() + PATIENCE_S
    values: list[int] = []
    while time.monotonic() < deadline and len(values) < count:
        if any(table.files()):
            values = sorted(int(value) for value in table.read()["value"].to_pylist())
        if not running.isActive:  # type: ignore[attr-defined]
            break
        time.sleep(0.3)
    return values


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), float(sys.argv[3]))
