"""Values to columns: compiled loops for Avro, Protobuf and JSON, and Arrow arrays of what they found."""
