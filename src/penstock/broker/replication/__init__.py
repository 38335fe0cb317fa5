"""Replication: the brokers of a cluster in one process, as followers, changing leaders and one controller."""
