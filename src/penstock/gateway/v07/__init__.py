"""Kafka 0.7 in front of a newer cluster: produce and fetch, with byte offsets that encode places."""
