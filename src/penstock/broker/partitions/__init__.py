"""One partition: validation, producer state, its log and what looks after it."""
