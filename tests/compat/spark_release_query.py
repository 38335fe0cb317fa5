"""Exercise the features that every Spark release from 4.0 on supports with Penstock; print the results.

python spark_release_query.py DIRECTORY
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader

from penstock import Admin, Broker, read_topic, write_topic
from penstock.errors import MissingDependencyError
from penstock.spark import follow, from_cloudevents, land, session
from penstock.tables import landed_dataset


class OtherSource(DataSource):
    """A second Python data source, which Spark must find in addition to Penstock's."""

    @classmethod
    def name(cls) -> str:
        return "other"

    def schema(self) -> str:
        return "n int"

    def reader(self, schema: object) -> DataSourceReader:
        return OtherReader()


class OtherReader(DataSourceReader):
    def read(self, partition: object) -> Any:
        yield (1,)


def numbers(first: int, count: int) -> pa.Table:
    return pa.table({"value": pa.array([b"%d" % n for n in range(first, first + count)], pa.binary())})


def main(directory: Path) -> None:
    accounts: dict[str, object] = {}
    with Broker(log_retention_ms=-1) as broker:
        brokers = broker.bootstrap_servers
        with Admin(bootstrap_servers=brokers) as admin:
            for topic in ("in", "copy", "streamed", "latest"):
                admin.create_topic(topic, partitions=2)
        write_topic(numbers(0, 100), "in", brokers)
        spark = session("release", "local[2]")
        accounts["version"] = spark.version
        spark.dataSource.register(OtherSource)
        accounts["other"] = spark.read.format("other").load().count()
        at = {"kafka.bootstrap.servers": brokers, "subscribe": "in", "includeHeaders": "true"}
        frame = spark.read.format("penstock").options(**at).load()
        accounts["batch"] = frame.count()
        frame.select("value", "headers", "timestamp").write.format("penstock").option(
            "kafka.bootstrap.servers", brokers
        ).option("topic", "copy").mode("append").save()
        times = [sorted(read_topic(topic, brokers)["timestamp"].to_pylist()) for topic in ("in", "copy")]
        accounts["copy"] = times[0] == times[1]
        group = {"kafka.group.id": "query", "commitOffsets": "true", "maxOffsetsPerTrigger": "30"}

        def start(trigger: dict[str, Any]) -> Any:
            reader = spark.readStream.format("penstock").options(**at, **group)
            stream = (
                reader.option("startingOffsets", "earliest").load().select("value", "headers", "timestamp")
            )
            writer = stream.writeStream.format("penstock").option("kafka.bootstrap.servers", brokers)
            writer = writer.option("topic", "streamed").option("checkpointLocation", str(directory / "state"))
            return writer.trigger(**trigger).start()

        follow(start({"availableNow": True}), lambda _: None)
        accounts["available now"] = read_topic("streamed", brokers).num_rows
        with Admin(bootstrap_servers=brokers) as admin:
            admin.create_partitions("in", 3)
        write_topic(numbers(100, 90), "in", brokers)
        query = start({"processingTime": "0 seconds"})
        deadline = time.monotonic() + 120
        while read_topic("streamed", brokers).num_rows < 190 and time.monotonic() < deadline:
            time.sleep(0.3)
        values = read_topic("streamed", brokers)["value"].to_pylist()
        accounts["stream"] = sorted(map(int, values)) == list(range(190))
        accounts["largest batch"] = max(p["numInputRows"] for p in query.recentProgress)
        committed: dict[Any, Any] = {}
        with Admin(bootstrap_servers=brokers) as admin:
            while sum(at.offset for at in committed.values()) < 190 and time.monotonic() < deadline:
                committed = admin.list_group_offsets("query")
                time.sleep(0.1)
        accounts["committed"] = sum(at.offset for at in committed.values())
        query.stop()
        runs = []
        for first in (190, 200, 210):
            latest = spark.readStream.format("penstock").options(**at).load().select("value")
            writer = latest.writeStream.format("penstock").option("kafka.bootstrap.servers", brokers)
            writer = writer.option("topic", "latest").option("checkpointLocation", str(directory / "latest"))
            follow(writer.trigger(availableNow=True).start(), lambda _: None)
            values = read_topic("latest", brokers)["value"].to_pylist()
            runs.append(sorted(map(int, values)) == [*range(190, first)])
            write_topic(numbers(first, 10), "in", brokers)
        accounts["runs from the latest"] = runs
        reader = spark.readStream.options(**at).option("startingOffsets", "earliest")
        landed = land(reader, directory / "lake", partition_by="partition")
        landed = landed.option("checkpointLocation", str(directory / "lake-state"))
        follow(landed.trigger(availableNow=True).start(), lambda _: None)
        values = landed_dataset(directory / "lake").to_table()["value"].to_pylist()
        accounts["landed"] = sorted(map(int, values)) == list(range(220))
        try:
            accounts["events"] = from_cloudevents(frame).count()
        except MissingDependencyError as error:
            accounts["events"] = str(error)
        accounts["binary events"] = from_cloudevents(frame, modes="binary").where("error is null").count()
        spark.stop()
    print("ACCOUNTS", json.dumps(accounts), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
