"""Faults on demand: what goes wrong with requests, answers and connections of clients, for tests."""
