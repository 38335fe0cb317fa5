"""The version of the package: what clients send to brokers, and what the command line prints."""

from __future__ import annotations

__version__ = "0.1.0"
