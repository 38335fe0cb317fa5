"""Event formats: JSON, Avro and Protobuf, for single events and batches."""
