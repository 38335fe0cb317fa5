"""Compiled loops (kernels) over the bytes of records, and the decorator that finds them."""
