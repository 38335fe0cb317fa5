"""Landing (storing topics as tables of files) from Spark: tasks write Parquet files, the sink commits them."""
