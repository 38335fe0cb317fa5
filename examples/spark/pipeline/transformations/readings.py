"""A streaming table from a topic, and a materialized view of that table."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

spark = SparkSession.active()


@dp.table
def readings() -> DataFrame:
    return (
        spark.readStream.format("penstock")
        .option("kafka.bootstrap.servers", spark.conf.get("readings.brokers"))
        .option("subscribe", spark.conf.get("readings.topic"))
        .option("startingOffsets", "earliest")
        .schema("key string, value string, partition int, offset bigint")
        .load()
    )


@dp.materialized_view
def hottest() -> DataFrame:
    return spark.read.table("readings").groupBy("key").agg({"value": "max"}).toDF("key", "hottest")
