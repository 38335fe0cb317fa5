"""The version of the package. Clients send it to brokers, and the command line prints it."""

from __future__ import annotations

__version__ = "0.1.0"
