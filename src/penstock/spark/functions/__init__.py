"""CloudEvents on columns: from records and to records."""
