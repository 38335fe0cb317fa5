"""From Spark's Kafka connector to this source and back: checkpoints, and what becomes of options."""
