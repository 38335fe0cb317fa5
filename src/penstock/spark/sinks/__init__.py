"""Sinks that write tables of files exactly once, and the progress of a query."""
