"""Landing (storing topics as tables of files) from Spark: tasks write files, the sink commits them."""
