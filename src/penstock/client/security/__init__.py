"""Security of client connections: settings under Java's and other names, and sans-I/O authentication.

`penstock.client.cluster` does the I/O. This package is imported only if a setting asks for security.
"""
