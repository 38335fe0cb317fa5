"""Metrics that clients push to brokers (KIP-714): as OpenTelemetry's bytes, and as `Point` objects."""
