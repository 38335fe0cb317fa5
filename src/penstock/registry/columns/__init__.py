"""Values to columns: compiled loops that read Avro and Protobuf, and Arrow arrays of what they found."""
