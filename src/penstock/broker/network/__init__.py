"""The sockets of a broker: listeners, connections, TLS, and the HTTP endpoint for metrics and health."""
