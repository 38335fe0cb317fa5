"""Copies of topics: where each record went, the offsets of groups by that, and a check of both sides."""
