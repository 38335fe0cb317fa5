"""Write rows to topics exactly once: a transaction for each task, one stored decision for each batch."""
