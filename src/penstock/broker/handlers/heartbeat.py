"""Heartbeat (12): extends a member's session; may ask it to rejoin. v3 adds instance ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.broker.context import Context
from penstock.errors import KafkaError
from penstock.protocol.messages.heartbeat_request import HeartbeatRequest
from penstock.protocol.messages.heartbeat_response import HeartbeatResponse

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode


def heartbeat(request: HeartbeatRequest, context: Context[ServingNode]) -> HeartbeatResponse:
    """Extend the session of a member; REBALANCE_IN_PROGRESS (27) asks it to rejoin."""
    service = context.node.groups
    try:
        service.open(request.group_id)
    except KafkaError as error:
        return HeartbeatResponse(error_code=error.code)
    return HeartbeatResponse(error_code=service.keep_alive(request, context.now))
