"""Kinds of tables: a directory, an object store, Delta, Iceberg; each has positions in its own commits."""
