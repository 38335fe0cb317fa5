"""How a client secures its connections: settings by any of their names, and authentication without I/O.

What carries the bytes is in `penstock.client.cluster`. Imported only where a setting asks for security.
"""
