"""Maintenance of logs while a broker runs: flushes, retention, compaction, a check of files at a start."""
