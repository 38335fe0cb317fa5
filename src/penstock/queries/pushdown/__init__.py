"""Derives the partitions, offsets, times and keys to read from filters."""
