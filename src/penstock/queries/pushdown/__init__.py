"""Derive partitions, offsets, times and keys from Arrow's filters."""
