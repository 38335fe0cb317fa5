"""Spark itself: sessions, the Java it needs, workers and their errors."""
