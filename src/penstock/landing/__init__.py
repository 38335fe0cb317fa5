"""Landing: topics as Parquet files, with a manifest for each batch that says which files count.

Workers write files under hidden names (`files`, `partitioning`). What a batch consists of is decided by one
file, its manifest (`manifest`), after which the files get their names (`table`); `delta` and `iceberg` add
them to tables of these formats. Independent of Spark and of brokers; docs/decisions/0015-landing.md has the
reasons.
"""
