"""Replication between the brokers of a cluster in one process: followers, leader changes, one controller."""
