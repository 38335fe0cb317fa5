"""Faults on demand, for tests: errors, delays and losses in requests, answers and connections of clients."""
