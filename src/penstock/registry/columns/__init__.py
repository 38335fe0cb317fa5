"""Values to columns: compiled loops that read Avro, Protobuf and JSON, and Arrow arrays of what they found."""
