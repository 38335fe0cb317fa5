"""Writes topics as Parquet files, in batches; a manifest for each batch lists its files.

Workers write files under hidden names (`files`, `partitioning`). A batch is committed by one file, its
manifest (`manifest`), after which the files get their final names (`table`); `delta` and `iceberg` add them
to tables of these formats. Independent of Spark and of brokers; docs/decisions/0015-landing.md has the
reasons.
"""
