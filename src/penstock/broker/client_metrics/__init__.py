"""Metrics that clients push (KIP-714): subscriptions, the rules of pushing, the newest values."""
