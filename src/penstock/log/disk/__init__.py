"""Logs on disk: one partition's log, a whole data directory, and reading beside a running broker."""
