"""Queries seen from outside: by their checkpoint, by reports of a listener, and under readable names."""
