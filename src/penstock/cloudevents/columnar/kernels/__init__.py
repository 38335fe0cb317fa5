"""Compiled loops over records and columns of events: reading, validating and writing headers, envelopes and data."""
