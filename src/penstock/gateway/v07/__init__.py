"""Kafka 0.7 in front of a newer cluster: byte offsets of 0.7 encode positions in the newer logs."""
