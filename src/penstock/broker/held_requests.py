"""Requests to a broker that is paused or cut off from its clients: they wait until the broker continues."""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.broker.requests.purgatory import Wait
from penstock.protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from penstock.broker.requests.routes import VersionedRoute

NEVER = float("inf")


class HeldBroker(NamedTuple):
    """The purgatory key of requests to the broker `node` while the broker is paused or cut off."""

    node: int


def holding(route: VersionedRoute, node: int, held: Container[int]) -> VersionedRoute:
    """Return a route whose requests wait as long as `held` contains the broker id `node`."""
    inner = route.handle

    def handle(request: Any, context: Any) -> Any:
        if node not in held:
            return inner(request, context)
        if route.key == ApiKey.PRODUCE:  # the frame's memory is reused before the request runs
            for topic in request.topic_data:
                for data in topic.partition_data:
                    data.records = None if data.records is None else memoryview(bytearray(data.records))
        return Wait((HeldBroker(node),), NEVER, 1, lambda: handle(request, context))

    return route._replace(handle=handle)


def nothing() -> None:
    """Do nothing. A paused broker's server calls this function instead of its method `run_due`."""
