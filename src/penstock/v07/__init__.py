"""Kafka 0.7: its wire protocol, its byte log, a broker and a driver, and migration to later releases.

It is a package of its own, because it shares only the idea of a log with later releases: offsets are
positions in bytes, nothing is acknowledged, requests carry neither version nor correlation id and cannot be
distinguished from later ones on one port, and consumers of a group coordinate through ZooKeeper.

Every name is imported on first use: the broker's listener needs neither driver nor groups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.common.lazy_names import lazy_names

if TYPE_CHECKING:
    from penstock.v07.driver import Driver07 as Driver07
    from penstock.v07.groups.consumer import GroupConsumer07 as GroupConsumer07
    from penstock.v07.producer import Producer07 as Producer07
    from penstock.v07.server import Broker07 as Broker07

_HOMES = {
    "Broker07": "server",
    "Driver07": "driver",
    "GroupConsumer07": "groups.consumer",
    "Producer07": "producer",
}

__all__ = sorted(_HOMES)

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
