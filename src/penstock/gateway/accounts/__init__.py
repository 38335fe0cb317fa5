"""Accounts behind the gateway: users of devices, checked here, and what each of them is in the cluster."""
