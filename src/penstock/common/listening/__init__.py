"""Shared by all servers of the package: accepting connections, a loop on a thread, exposure to others."""
