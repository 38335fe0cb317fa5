"""Fault injection for tests: errors, delays and losses in clients' requests, responses and connections."""
