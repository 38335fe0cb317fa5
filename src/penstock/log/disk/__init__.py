"""Logs on disk: one partition's log, a whole data directory, and reading while a broker runs."""
