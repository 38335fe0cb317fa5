"""Advice for users of other Kafka clients about names and arguments: read only after a mistake."""
