"""Landing from Spark: tasks write the records that they decode as Parquet files, the sink commits them."""
