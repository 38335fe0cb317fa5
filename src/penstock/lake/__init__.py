"""The lake: topics as tables of Iceberg and Delta, or as Parquet in a directory or an object store.

One process reads a topic (`reading`), gives its records columns (`shapes`), and writes files that only a
commit of the table makes count. How far it is stands in that commit. `kinds` has what differs between
Iceberg, Delta, object stores and directories. docs/decisions/0024-lake.md has the reasons. Needs numpy and
pyarrow.
"""
