"""One partition: validation, producer state, its log and its maintenance."""
