"""The part of a statistics snapshot that every client has: its brokers, and totals over them."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from penstock.client.statistics import Statistics, broker_statistics

if TYPE_CHECKING:
    from penstock.client.cluster.client import AsyncClient


def client_statistics(client: AsyncClient, kind: str, **more: Any) -> Statistics:
    """Return a snapshot of a client of type `kind`; `more` are further fields. Any thread may call this."""
    now = time.monotonic()
    waiting: Counter[str] = Counter()
    for connection in client.connections():
        waiting[connection.counters.name] += connection.requests_in_flight
    brokers = {
        counters.name: broker_statistics(counters, waiting[counters.name])
        for counters in client.counters.brokers.copy().values()
    }
    return Statistics(
        client_id=client.config.client_id,
        type=kind,
        ts=int(now * 1e6),
        time=int(time.time()),
        age=int((now - client.made_at) * 1e6),
        tx=sum(broker.tx for broker in brokers.values()),
        tx_bytes=sum(broker.txbytes for broker in brokers.values()),
        rx=sum(broker.rx for broker in brokers.values()),
        rx_bytes=sum(broker.rxbytes for broker in brokers.values()),
        brokers=brokers,
        **more,
    )
