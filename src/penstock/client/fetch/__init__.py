"""Fetching: positions, Fetch requests, and records or Arrow columns out of their responses."""
