"""Rows into topics exactly once: a transaction for each task, one durable decision for each batch."""
