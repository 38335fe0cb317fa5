"""The version of the package, which clients send to brokers and the command line prints."""

from __future__ import annotations

__version__ = "0.1.0"
