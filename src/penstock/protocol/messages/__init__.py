"""Every message, each imported on first use. Generated: do not edit."""

from __future__ import annotations

import importlib


def __getattr__(name: str) -> object:
    from penstock.protocol.message_index import HOMES

    home = HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    from penstock.protocol.message_index import HOMES

    return sorted(HOMES)
