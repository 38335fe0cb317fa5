"""The kinds of tables: directory, object store, Delta, Iceberg; each stores positions in its commits."""
