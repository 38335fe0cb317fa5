"""Observe queries from outside: by their checkpoints, by files of a listener, and by readable names."""
