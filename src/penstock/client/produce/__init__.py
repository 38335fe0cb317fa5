"""Producing: batching, partitioning, sending, and delivery reports."""
