"""The gateway: a proxy between Kafka clients of any release and a cluster, with a port for each broker.

    with Gateway(to="kafka-1:9093,kafka-2:9093") as gateway:
        ...  # any client at gateway.bootstrap_servers

Names are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.common.lazy_names import lazy_names

if TYPE_CHECKING:
    from penstock.gateway.gateway import Gateway as Gateway
    from penstock.gateway.limits import Limits as Limits
    from penstock.gateway.seen.taps import Seen as Seen

_HOMES = {"Gateway": "gateway", "Limits": "limits", "Seen": "seen.taps"}

__all__ = ["Gateway", "Limits", "Seen"]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
