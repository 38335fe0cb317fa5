"""Kafka 0.7 in front of a cluster of today: records in and out, and byte offsets that say which record is next."""
