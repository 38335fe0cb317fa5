"""Compiled loops over the bytes of records, and what compiles them."""
