"""Compile a message definition at one version into functions that encode and decode it."""
