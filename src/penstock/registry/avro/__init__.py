"""Avro: schemas, their resolution into programs for the compiled loop, compatibility, and rows."""
