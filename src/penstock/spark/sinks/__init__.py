"""Sinks that write exactly once: tables of files, and topics."""
