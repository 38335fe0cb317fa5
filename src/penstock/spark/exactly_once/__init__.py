"""Write rows to topics exactly once: each task uses a transaction, each batch is decided by one record."""
