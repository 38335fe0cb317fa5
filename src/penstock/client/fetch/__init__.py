"""Fetching: positions, requests, and records or columns out of answers."""
