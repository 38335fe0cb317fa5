"""Shared by several rooms: optional libraries, suggestions, Java's hash, advice for errno, buffers, threads.

Independent of Kafka's protocol, of records and of sockets. Imports nothing of the package but `errors`
and `model`.
"""
