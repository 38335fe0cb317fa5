"""Fetching: positions, Fetch requests, and decoding of the responses into records or Arrow columns."""
