"""Transactions of a producer: the sans-I/O state machine, and requests to coordinators."""
