"""Replicas: several brokers in one process, with followers, leaders that change, and one controller."""
