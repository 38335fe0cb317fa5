"""Settings of clients that a copy gives to several of them."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.client.config import SECURITY_NAMES, ClientConfig, known_names


def shared_settings(config: Mapping[str, object]) -> dict[str, object]:
    """Return those settings of a client that every kind of client has."""
    known = known_names(ClientConfig)
    return {
        name: value
        for name, value in config.items()
        if name.replace("_", ".") in known or name.replace("_", ".").startswith(SECURITY_NAMES)
    }
