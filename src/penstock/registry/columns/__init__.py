"""Decodes values to Arrow columns, with compiled loops for Avro, Protobuf and JSON."""
