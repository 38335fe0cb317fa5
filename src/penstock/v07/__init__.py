"""Kafka 0.7: its wire, its byte log, a broker and a driver, and the way out.

A room of its own, because nothing but the idea of a log is shared with what came after: offsets are
positions in bytes, nothing is acknowledged, requests carry neither version nor correlation id and cannot
be told apart from later ones on one port, and whoever consumes together agrees through ZooKeeper.
"""
