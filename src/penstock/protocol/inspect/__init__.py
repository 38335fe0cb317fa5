"""Messages shown to users and tools: definitions, JSON form, sizes, version prefixes of records."""
