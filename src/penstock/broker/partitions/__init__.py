"""The broker's partitions: validation of batches, producer state, logs and their maintenance."""
