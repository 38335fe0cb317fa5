"""Shows messages to users and tools: definitions, JSON form, sizes; version prefixes of stored messages."""
