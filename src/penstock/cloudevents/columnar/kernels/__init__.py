"""Compiled loops that read, validate and write the headers, envelopes and data of records and events."""
