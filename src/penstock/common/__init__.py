"""Shared by several rooms: optional libraries, suggestions, Java's hash, advice for errno, buffers, threads.

Knows nothing of Kafka's protocol, of records or of sockets. Imports nothing of the package but `errors`
and `model`.
"""
