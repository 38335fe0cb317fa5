"""Logs on disk: one partition's, a whole data directory of them, and reading one that no broker has open."""
