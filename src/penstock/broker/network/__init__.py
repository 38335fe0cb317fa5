"""Sockets: listeners, connections, and the endpoint for metrics."""
