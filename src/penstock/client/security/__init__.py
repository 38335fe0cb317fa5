"""Security of client connections: settings by any of their names, and sans-I/O authentication.

What carries the bytes is in `penstock.client.cluster`. Imported only where a setting asks for security.
"""
