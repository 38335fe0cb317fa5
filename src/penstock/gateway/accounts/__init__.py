"""Accounts: users that log in at the gateway, and the credentials that the gateway uses for each."""
