"""Observe streaming queries from other programs: their checkpoints, reports in files, and readable names."""
