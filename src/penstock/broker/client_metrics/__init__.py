"""Metrics that clients push (KIP-714): subscriptions, checks of pushes, and the newest values."""
