"""The lake: topics as tables of Iceberg and Delta, or as Parquet in a directory or an object store.

One process reads a topic (`reading`), converts its records to rows (`shapes`), and writes data files. A
commit adds the files to the table, and also stores the topic's offsets up to which it has been read. `kinds`
contains one module each for Iceberg, Delta, object stores and directories. docs/decisions/0024-lake.md has
the reasons. Needs numpy and pyarrow.
"""
