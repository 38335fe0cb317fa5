"""Event formats: JSON, Avro, Protobuf, and batches and lines of events."""
