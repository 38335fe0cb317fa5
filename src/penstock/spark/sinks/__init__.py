"""Sinks that write tables of files exactly once, and reports of a query's progress."""
