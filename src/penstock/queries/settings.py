"""Which settings of a consumer concern other clients as well."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.client.config import ClientConfig
from penstock.errors import ConfigError


def shared_settings(config: Mapping[str, object] | None) -> dict[str, Any]:
    """Return those settings of a consumer that every client has: security, addresses, timeouts."""
    found: dict[str, Any] = {}
    for name, value in (config or {}).items():
        try:
            ClientConfig.parse({name: value}, {"bootstrap_servers": "localhost:9092"})
        except ConfigError:
            continue
        found[name] = value
    return found
