"""Kafka 0.7 in front of a cluster of today: records in and out, at byte offsets that are codes."""
