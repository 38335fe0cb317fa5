"""Statistics of a client: what is counted, snapshots of it, and reports at intervals."""
