"""JSON: columns by a JSON Schema or by the values themselves, and compatibility of JSON Schemas."""
