"""The lake: topics as tables of Iceberg and Delta, or as Parquet in a directory or an object store.

One process reads a topic (`reading`), converts its records to rows (`shapes`), and writes files that become
part of the table only by a commit. That commit also stores the positions in the topic. `kinds` has the
differences between Iceberg, Delta, object stores and directories. docs/decisions/0024-lake.md has the
reasons. Needs numpy and pyarrow.
"""
