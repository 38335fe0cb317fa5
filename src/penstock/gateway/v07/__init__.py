"""Kafka 0.7 in front of a newer cluster: the byte offsets of 0.7 encode its record offsets."""
