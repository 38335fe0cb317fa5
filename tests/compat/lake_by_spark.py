"""Read Iceberg and Delta tables with Spark and their jars, and write each to a Parquet file.

python lake_by_spark.py ASKED.json JARS (ASKED.json has the table locations by name)
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import SparkSession


def main(asked: dict[str, str], directory: Path, jars: str) -> None:
    settings = {
        "spark.jars": jars,
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalog.rest": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.rest.type": "rest",
        "spark.sql.catalog.rest.uri": asked.pop("rest", ""),
        "spark.sql.catalog.rest.credential": "me:hush",
    }
    builder = SparkSession.builder.master("local[1]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    for name, where in asked.items():
        kind, _, place = where.partition("://")
        if kind == "iceberg":
            frame = spark.table(f"rest.{place.partition('/')[2]}")
        else:
            frame = spark.read.format("delta").load(place)
        pq.write_table(frame.toArrow(), directory / f"{name}.parquet")
    spark.stop()


if __name__ == "__main__":
    given = Path(sys.argv[1])
    main(json.loads(given.read_text()), given.parent, sys.argv[2])
