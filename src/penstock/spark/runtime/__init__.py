"""Start and configure Spark: sessions, the Java that Spark needs, Python workers and their errors."""
