"""Maintenance of logs while a broker runs: flushes, retention, compaction, and a check for missing files."""
