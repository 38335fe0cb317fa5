"""Makes the Spark data source `penstock` known: Spark imports every module named `pyspark_*`."""
