"""The consumer's settings that other clients (producer, admin) accept as well."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.client.config import ClientConfig
from penstock.errors import ConfigError


def shared_settings(config: Mapping[str, object] | None) -> dict[str, Any]:
    """Return the settings in `config` that every client accepts: security, addresses, timeouts."""
    found: dict[str, Any] = {}
    for name, value in (config or {}).items():
        try:
            ClientConfig.parse({name: value}, {"bootstrap_servers": "localhost:9092"})
        except ConfigError:
            continue
        found[name] = value
    return found
