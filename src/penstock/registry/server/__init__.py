"""A schema registry: what decides, the topic that keeps its records, and the server that clients ask."""
