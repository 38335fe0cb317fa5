"""Stream a topic of JSON to its end into an Iceberg table, with Spark and the JVM Kafka connector.

python stream.py SERVERS CHECKPOINT JARS CATALOG

CATALOG is a JSON object with the options of the catalog.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, from_json

FIELDS = "`order` bigint, place string, amount double, currency string, state string, note string"


def main(servers: str, checkpoint: str, jars: str, catalog: str) -> None:
    settings = {
        "spark.jars": jars,
        "spark.ui.enabled": "false",
        "spark.sql.catalog.c": "org.apache.iceberg.spark.SparkCatalog",
        **{f"spark.sql.catalog.c.{name}": value for name, value in json.loads(catalog).items()},
        "spark.driver.memory": "1g",
    }
    builder = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sql("create namespace c.bench")
    spark.sql(
        f"create table c.bench.json (partition int, offset bigint, timestamp timestamp, key binary, {FIELDS})"
        " using iceberg tblproperties ('write.parquet.compression-codec' = 'zstd')"
    )
    source = {"kafka.bootstrap.servers": servers, "subscribe": "json", "startingOffsets": "earliest"}
    source |= {"kafka.max.partition.fetch.bytes": str(8 << 20), "kafka.fetch.max.bytes": str(32 << 20)}
    records = spark.readStream.format("kafka").options(**source).load()
    value = from_json(col("value").cast("string"), FIELDS).alias("v")
    rows = records.select("partition", "offset", "timestamp", "key", value).select(
        "partition", "offset", "timestamp", "key", "v.*"
    )
    writer = rows.writeStream.format("iceberg").option("checkpointLocation", checkpoint)
    writer.trigger(availableNow=True).toTable("c.bench.json").awaitTermination()
    # The JVM's, and that of this process, whose child it is.
    figures = (
        Path(f"/proc/{spark.sparkContext._gateway.proc.pid}/stat").read_text().rpartition(")")[2].split()
    )
    used = (int(figures[11]) + int(figures[12])) / os.sysconf("SC_CLK_TCK") + time.process_time()
    print("ACCOUNTS", spark.table("c.bench.json").count(), used)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:5])
