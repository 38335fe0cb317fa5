"""Messages for people and tools: printed definitions, JSON form, sizes, version prefixes of records."""
