"""Shared by several rooms: optional libraries, suggestions, Java's hash, Protobuf, errno, buffers, threads.

Independent of Kafka's protocol, of records and of sockets. Imports nothing of the package but `errors`
and `model`.
"""
