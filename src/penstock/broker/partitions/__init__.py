"""One partition of a topic: validation of batches, producer state, the log and its maintenance."""
