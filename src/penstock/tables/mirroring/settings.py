"""The client settings that a copy passes to several of its clients."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.client.config import SECURITY_NAMES, ClientConfig, known_names


def shared_settings(config: Mapping[str, object]) -> dict[str, object]:
    """Return the settings in `config` that every kind of client accepts."""
    known = known_names(ClientConfig)
    return {
        name: value
        for name, value in config.items()
        if name.replace("_", ".") in known or name.replace("_", ".").startswith(SECURITY_NAMES)
    }
