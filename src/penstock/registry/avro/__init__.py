"""Avro: parsing and resolution of schemas, compiled reading and writing, and compatibility checks."""
