"""LeaveGroup (13): members leave a group.

Before v3 one member leaves; since v3 a request names several members, each with its own result; v5 adds a
reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.broker.context import Context
from penstock.errors import KafkaError
from penstock.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from penstock.protocol.messages.leave_group_response import LeaveGroupResponse
from penstock.protocol.since import LEAVE_GROUP_MEMBERS_SINCE

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode


def leave_group(request: LeaveGroupRequest, context: Context[ServingNode]) -> LeaveGroupResponse:
    """Remove members: the one that sent the request, or static members identified by instance ids."""
    service = context.node.groups
    one_only = context.version < LEAVE_GROUP_MEMBERS_SINCE
    identities = [MemberIdentity(member_id=request.member_id)] if one_only else request.members
    try:
        service.open(request.group_id)
    except KafkaError as error:
        return LeaveGroupResponse(error_code=error.code)
    response = service.leave(request, identities, context.now)
    if one_only and response.members:
        return LeaveGroupResponse(error_code=response.members[0].error_code)
    return response
