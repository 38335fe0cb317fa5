"""The segments of a log on disk: files, indexes, recovery after a crash."""
