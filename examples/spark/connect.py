"""A client of Spark Connect: the query runs in the server, and this program needs no Java and no Penstock.

    python connect.py sc://host:15002 BROKERS TOPIC

Needs ``pip install "pyspark[connect]"``. The Python of the server has to have Penstock.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession


def main(remote: str, brokers: str, topic: str) -> None:
    spark = SparkSession.builder.remote(remote).getOrCreate()
    options = {"kafka.bootstrap.servers": brokers, "subscribe": topic}
    schema = "key string, value string"
    rows = spark.read.format("penstock").options(**options).schema(schema).load()
    for key, count in sorted(rows.groupBy("key").count().collect()):
        print(key, count)

    query = (
        spark.readStream.format("penstock")
        .options(**options, startingOffsets="earliest")
        .schema(schema)
        .load()
        .writeStream.format("memory")
        .queryName("copy")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    print("streamed", spark.table("copy").count())
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
