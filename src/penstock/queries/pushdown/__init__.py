"""Conclusions from Arrow's filters about the places of records."""
