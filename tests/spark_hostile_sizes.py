"""A program that measures the memory Spark needs for large invalid records that become dead letters.

    python spark_hostile_sizes.py DIRECTORY MEGABYTES

It writes invalid envelopes, values, headers and formats of MEGABYTES each between valid events, and reads
them in a Spark session with a heap of 2 GB. It prints the peak memory of each process.
"""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

import psutil
import pyarrow as pa

from penstock import Admin, Broker, read_topic, write_topic
from penstock.spark import follow, session

MB = 1 << 20
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
EVENT = [("ce_specversion", b"1.0"), ("ce_id", b"1"), ("ce_source", b"/s"), ("ce_type", b"t")]
JSON = ("content-type", b"application/cloudevents+json")


class Peaks:
    """A thread that records the peak memory of each child process until it is closed."""

    def __init__(self) -> None:
        self.bytes: dict[tuple[str, int], int] = {}
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._ends.wait(0.1):
            for child in psutil.Process().children(recursive=True):
                try:
                    place = ("jvm" if "java" in child.name() else "worker", child.pid)
                    self.bytes[place] = max(self.bytes.get(place, 0), child.memory_info().rss)
                except psutil.Error:
                    continue

    def close(self) -> None:
        self._ends.set()
        self._thread.join()

    def most_mb(self, kind: str) -> int:
        return max(most for (name, _), most in self.bytes.items() if name == kind) // MB


def main(directory: Path, size: int) -> None:
    limit = str(size + 16 * MB)
    hostile = [
        (b"{" + b" " * size, [JSON]),
        (b"\xff" * size, [JSON]),
        (b"x", [*EVENT[:1], ("ce_id", b"\x80" * size), *EVENT[2:]]),
        (b"z" * size, [("content-type", b"application/cloudevents+perl")]),
    ]
    good = [(b"good", EVENT), (b"y" * size, EVENT)]
    # Requests in flight and the largest of them are limited apart, by a broker of Apache Kafka too.
    limits = {"socket_request_max_bytes": 2 * size + 64 * MB, "queued_max_request_bytes": 4 * size + 128 * MB}
    with Broker(log_retention_ms=-1, **limits) as broker:
        servers = broker.bootstrap_servers
        with Admin(servers) as admin:
            for topic in ("in", "letters"):
                admin.create_topic(topic, partitions=1, config={"max.message.bytes": limit})
        writing = {"message.max.bytes": limit, "buffer.memory": str(3 * size + 32 * MB)}
        for value, headers in (good[0], *hostile, good[1], good[0]):
            record = {
                "value": pa.array([value], pa.binary()),
                "headers": pa.array([[{"key": k, "value": v} for k, v in headers]], HEADERS),
            }
            write_topic(pa.table(record), "in", servers, config=writing)
        spark = session("sizes", "local[2]", config={"spark.driver.memory": "2g"})
        peaks = Peaks()
        reading = {"kafka.bootstrap.servers": servers, "subscribe": "in", "cloudevents": "columns"}
        events = (
            spark.readStream.format("penstock")
            .options(**reading)
            .option("startingOffsets", "earliest")
            .load()
        )
        query = (
            events.where("error is not null")
            .selectExpr("value", "array(struct('reason' as key, encode(error, 'utf-8') as value)) as headers")
            .writeStream.format("penstock")
            .option("kafka.bootstrap.servers", servers)
            .option("topic", "letters")
            .option("kafka.max.request.size", limit)
            .option("kafka.buffer.memory", writing["buffer.memory"])
            .option("checkpointLocation", str(directory))
            .trigger(availableNow=True)
            .start()
        )
        follow(query, lambda _: None)
        batch = spark.read.format("penstock").options(**reading).load().where("error is null")
        sizes = sorted(row.size for row in batch.selectExpr("length(data) as size").collect())
        peaks.close()
        spark.stop()
        letters = read_topic("letters", servers)
        accounts = {
            "reasons": [row[0]["value"].decode() for row in letters["headers"].to_pylist()],
            "letters": sorted(len(value) for value in letters["value"].to_pylist()),
            "events": sizes,
            "worker_mb": peaks.most_mb("worker"),
            "jvm_mb": peaks.most_mb("jvm"),
        }
    print("ACCOUNTS", json.dumps(accounts), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(float(sys.argv[2]) * MB))
