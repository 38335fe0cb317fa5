"""Metrics that clients push to brokers (KIP-714), as bytes of OpenTelemetry's protocol and as points."""
