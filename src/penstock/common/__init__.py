"""Helpers for all packages: optional libraries, suggestions, Java's hash, Protobuf, errno, buffers, threads.

These modules do not depend on Kafka's protocol, records or sockets, and import nothing of the package but
`errors` and `model`.
"""
