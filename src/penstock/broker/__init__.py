"""The broker: plain modules decide, asyncio stands only in `network`.

`Broker` runs one inside this process; `penstock.broker.process` is what ``penstock broker`` runs. Both are
imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.broker.broker import Broker as Broker

__all__ = ["Broker"]


def __getattr__(name: str) -> object:
    if name == "Broker":
        from penstock.broker.broker import Broker

        return Broker
    raise AttributeError(f"module 'penstock.broker' has no attribute {name!r}")
