"""Landing from Spark: tasks write the Parquet files of what they decode, the sink commits them."""
