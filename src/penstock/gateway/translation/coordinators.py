"""Looks up a group's coordinator, for requests that clients of Kafka 0.8.1 send to any broker."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from penstock.gateway.calls import NodeCall
from penstock.gateway.translation.errors import NotForwarded
from penstock.protocol.api import ApiKey
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from penstock.protocol.since import FIND_COORDINATOR_KEYS_SINCE

if TYPE_CHECKING:
    from penstock.gateway.calls import Ranges

NEWEST = 6

MOVED = frozenset((ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR))
"""Error codes of a coordinator that has moved to another broker; it is then looked up again."""

ATTEMPTS = 2
"""The most attempts to send a request to a coordinator; each attempt looks the coordinator up again."""


def find_coordinator(group_id: str, upstream: Ranges) -> Generator[NodeCall, Any, tuple[int, int]]:
    """Look up the coordinator of a group; return (node id, 0), or (-1, error code).

    Raises:
        Refused: the cluster has no version of FindCoordinator that this package supports.
    """
    low, high = upstream.get(ApiKey.FIND_COORDINATOR, (0, -1))
    version = min(high, NEWEST)
    if version < low:
        raise NotForwarded("the cluster offers no FindCoordinator that the gateway has")
    if version < FIND_COORDINATOR_KEYS_SINCE:
        one = yield NodeCall(ApiKey.FIND_COORDINATOR, version, FindCoordinatorRequest(key=group_id))
    else:
        request = FindCoordinatorRequest(coordinator_keys=[group_id])
        response = yield NodeCall(ApiKey.FIND_COORDINATOR, version, request)
        if not response.coordinators:
            return -1, ErrorCode.COORDINATOR_NOT_AVAILABLE
        one = response.coordinators[0]
    return (one.node_id, 0) if not one.error_code else (-1, one.error_code)
