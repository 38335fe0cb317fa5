"""Protobuf: schemas as text or descriptors, messages as columns, and compatibility checks."""
