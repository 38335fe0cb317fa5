"""A job for ``spark-submit``: copies what a topic holds into another one, each record once.

    spark-submit --master spark://host:7077 --properties-file spark-defaults.conf \
        --archives environment.tar.gz#environment job.py BROKERS FROM TO CHECKPOINT

Run again with the same checkpoint it copies what has come since. docs/how-to/spark-at-home.md says how the
archive is made, and what to do without one.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession


def main(brokers: str, source: str, target: str, checkpoint: str) -> None:
    spark = SparkSession.builder.appName(f"{source} to {target}").getOrCreate()
    stream = (
        spark.readStream.format("penstock")
        .option("kafka.bootstrap.servers", brokers)
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .schema("key binary, value binary, timestamp timestamp")
        .load()
    )
    query = (
        stream.writeStream.format("penstock")
        .option("kafka.bootstrap.servers", brokers)
        .option("topic", target)
        .option("exactlyOnce", True)
        .option("checkpointLocation", checkpoint)
        .queryName(f"penstock[{source}] on {brokers}")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    print("copied", sum(report["numInputRows"] for report in query.recentProgress), "records", flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
