"""JSON: columns from a JSON Schema or from the values themselves, and compatibility of JSON Schemas."""
