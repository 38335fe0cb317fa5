"""Log compaction: keep the last record of every key, and remove the records before it."""
