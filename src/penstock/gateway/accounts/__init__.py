"""Accounts: users that log in at the gateway, and each user's credentials for the cluster."""
