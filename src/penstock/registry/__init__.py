"""Schemas of keys and values: a client of registries, wire formats, columns, serializers, and a registry.

Every name is imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.common.lazy_names import lazy_names

if TYPE_CHECKING:
    from penstock.registry.client import RegistryClient as RegistryClient
    from penstock.registry.client import RegistryError as RegistryError
    from penstock.registry.schemas import Reference as Reference
    from penstock.registry.schemas import RegisteredSchema as RegisteredSchema
    from penstock.registry.schemas import Schema as Schema

_HOMES = {
    "Reference": "schemas",
    "RegisteredSchema": "schemas",
    "RegistryClient": "client",
    "RegistryError": "client",
    "Schema": "schemas",
}

__all__ = sorted(_HOMES)

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
