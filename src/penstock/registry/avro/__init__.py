"""Avro: schemas, programs that resolve them for a fast loop, compatibility checks, and rows."""
