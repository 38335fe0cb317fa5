"""Messages for people and tools: printed definitions, the JSON form, sizes, version prefixes of records."""
