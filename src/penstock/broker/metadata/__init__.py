"""The metadata of a cluster: topics, brokers, settings and so on, their changes, and the metadata log."""
