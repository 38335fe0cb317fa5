"""Transactions of a producer: what decides without I/O, and what talks to coordinators."""
