"""Landing: topics as Parquet files, with a manifest for each batch that names its files.

Workers write files under hidden names (`files`, `partitioning`). A batch is committed by one file, its
manifest (`manifest`), after which the files get their final names (`table`); `delta` and `iceberg` add them
to tables of these formats. Independent of Spark and of brokers; docs/decisions/0015-landing.md has the
reasons.
"""
