"""Log compaction: for every key the last record stays."""
