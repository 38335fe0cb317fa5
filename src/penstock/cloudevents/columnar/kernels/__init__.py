"""Compiled loops over records and events: to read, validate and write headers, envelopes and data."""
