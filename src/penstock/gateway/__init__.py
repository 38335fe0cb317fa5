"""A gateway: clients of any version of the protocol in front of a cluster of another."""
