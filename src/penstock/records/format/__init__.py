"""The byte format of batches: header fields, varints, checksums, and spans of records and keys."""
