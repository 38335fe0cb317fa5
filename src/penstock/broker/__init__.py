"""The Kafka broker. Protocol logic does no I/O; `network` and the modules that run brokers use asyncio.

`Broker` runs one broker inside this process, `Cluster` several brokers. The command ``penstock broker`` runs
`penstock.broker.process`. All three are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.broker.broker import Broker as Broker
    from penstock.broker.cluster import Cluster as Cluster

__all__ = ["Broker", "Cluster"]


def __getattr__(name: str) -> object:
    if name == "Broker":
        from penstock.broker.broker import Broker

        return Broker
    if name == "Cluster":
        from penstock.broker.cluster import Cluster

        return Cluster
    raise AttributeError(f"module 'penstock.broker' has no attribute {name!r}")
