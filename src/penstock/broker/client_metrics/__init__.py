"""Metrics that clients push (KIP-714): who is asked for which, the rules of pushing, the newest values."""
