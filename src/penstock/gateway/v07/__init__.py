"""Lets Kafka 0.7 clients use a newer cluster. Byte offsets of 0.7 encode the cluster's record offsets."""
