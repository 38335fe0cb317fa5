"""SyncGroup (14): the leader sends all assignments, every member receives its own.

v3 adds instance ids; v5 the protocol's type and name, which must be equal to the group's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.broker.context import Context
from penstock.errors import KafkaError
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.sync_group_request import SyncGroupRequest
from penstock.protocol.messages.sync_group_response import SyncGroupResponse
from penstock.protocol.since import SYNC_GROUP_PROTOCOL_SINCE

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode


def sync_group(request: SyncGroupRequest, context: Context[ServingNode]) -> Any:
    """Return the assignment of a member, or a `Wait` for it. The leader's request has all assignments."""
    service = context.node.groups
    if context.version >= SYNC_GROUP_PROTOCOL_SINCE and None in (
        request.protocol_type,
        request.protocol_name,
    ):
        return SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    try:
        service.open(request.group_id)
    except KafkaError as error:
        return SyncGroupResponse(error_code=error.code)
    return service.sync(request, context.now)
