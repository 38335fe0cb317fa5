"""The kinds of tables: directory, object store, Delta, Iceberg; each commit also stores topic offsets."""
