"""Shared by all servers of the package: accepting connections, a loop on a thread, checks of addresses."""
