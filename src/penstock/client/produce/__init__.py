"""Producing: batches, partitioners, sending to leaders, and the deliveries that report outcomes."""
