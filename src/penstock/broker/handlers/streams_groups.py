"""Checks that all handlers of streams group requests use."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from penstock.broker.context import Context
from penstock.broker.handlers.api_versions import SHARES_SINCE
from penstock.broker.metadata.image import streams_level

if TYPE_CHECKING:
    from penstock.broker.config.values import BrokerConfig
    from penstock.broker.handlers.serving_node import ServingNode

PROTOCOLS = "group.coordinator.rebalance.protocols"


def has_streams_groups(context: Context[ServingNode]) -> bool:
    """Return True if the broker offers streams groups.

    The cluster's `streams.version` must be 1, the release 4.2 or later, and
    `group.coordinator.rebalance.protocols` must name the protocol.
    """
    node = context.node
    if not node.config.behaves_since(*SHARES_SINCE):
        return False
    return streams_level(node.cluster.features) > 0 and offers_protocol(node.config, "streams")


def offers_protocol(config: BrokerConfig, name: str) -> bool:
    """Return True if `group.coordinator.rebalance.protocols` names this group protocol."""
    return name in _names(config.text(PROTOCOLS) or "")


@lru_cache(maxsize=8)
def _names(text: str) -> frozenset[str]:
    """Return the names in a comma-separated setting. Results are cached, as every heartbeat needs them."""
    return frozenset(each.strip() for each in text.split(","))
