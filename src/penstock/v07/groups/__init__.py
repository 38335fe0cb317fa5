"""Consumer groups of Kafka 0.7: coordination through ZooKeeper."""
