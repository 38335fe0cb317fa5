"""The bytes of the format: positions in a batch header, varints, checksums, spans of records and keys."""
