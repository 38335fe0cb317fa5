"""The byte format of batches: header fields, varints, checksums, and positions of records and keys."""
