"""JSON: the columns that a JSON Schema says, or that values show, and compatibility of JSON Schemas."""
