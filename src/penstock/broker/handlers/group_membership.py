"""JoinGroup (11), SyncGroup (14), Heartbeat (12) and LeaveGroup (13): being a member.

JoinGroup, versions 0-9: v0 has one timeout, for the session and for rejoining; v1 has two; v4 a member
without an id is given one first (error 79); v5 instance ids; v7 the protocol's type, and no protocol's name
in errors; v8 a reason; v9 the leader may be told to skip the assignment.

SyncGroup, versions 0-5: v3 instance ids; v5 the protocol's type and name, which must be the group's.
Heartbeat, versions 0-4: v3 instance ids. LeaveGroup, versions 0-5: one member before v3, several from then
on, each with an outcome of its own; v5 a reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from penstock.broker.context import Context, Parts
from penstock.broker.groups.classic.member import Caller
from penstock.broker.groups.classic.roster import refused_join
from penstock.broker.requests.purgatory import Wait
from penstock.errors import KafkaError
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.heartbeat_request import HeartbeatRequest
from penstock.protocol.messages.heartbeat_response import HeartbeatResponse
from penstock.protocol.messages.join_group_request import JoinGroupRequest
from penstock.protocol.messages.join_group_response import JoinGroupResponse
from penstock.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from penstock.protocol.messages.leave_group_response import LeaveGroupResponse
from penstock.protocol.messages.sync_group_request import SyncGroupRequest
from penstock.protocol.messages.sync_group_response import SyncGroupResponse

if TYPE_CHECKING:
    from penstock.broker.groups.service import GroupService

TWO_TIMEOUTS_SINCE = 1
NO_PROTOCOL_SINCE = 7
PROTOCOL_NAMED_SINCE = 5
SEVERAL_LEAVE_SINCE = 3


class Needs(Parts, Protocol):
    """The parts of a broker that this API works on."""

    @property
    def groups(self) -> GroupService: ...


def join_group(request: JoinGroupRequest, context: Context[Needs]) -> Any:
    """Become a member, or stay one when the group asks everybody to join again."""
    service = context.node.groups
    version = context.version
    if version < TWO_TIMEOUTS_SINCE:
        request.rebalance_timeout_ms = request.session_timeout_ms
    try:
        service.open(request.group_id)
    except KafkaError as error:
        return _fit(refused_join(request.member_id, ErrorCode(error.code)), version)
    client_id, address = context.session.client_id or "", f"/{context.session.client_address}"
    if not service.has_room_for_member(request, client_id):
        # Clients look for their coordinator again after a while, and find room or not.
        refused = refused_join(request.member_id, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return _fit(refused, version)
    outcome = service.join(request, Caller(client_id, address, version), context.now)
    if isinstance(outcome, Wait):
        give = outcome.answer
        assert give is not None
        outcome.answer = lambda: _fit(give(), version)
        return outcome
    return _fit(outcome, version)


def _fit(response: Any, version: int) -> JoinGroupResponse:
    """Before version 7 there is no way to say that there is no protocol."""
    assert isinstance(response, JoinGroupResponse)
    if response.protocol_name is None and version < NO_PROTOCOL_SINCE:
        response.protocol_name = ""
    return response


def sync_group(request: SyncGroupRequest, context: Context[Needs]) -> Any:
    """Learn what is assigned; the leader tells what it has assigned to whom."""
    service = context.node.groups
    if context.version >= PROTOCOL_NAMED_SINCE and None in (request.protocol_type, request.protocol_name):
        return SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    try:
        service.open(request.group_id)
    except KafkaError as error:
        return SyncGroupResponse(error_code=error.code)
    return service.sync(request, context.now)


def heartbeat(request: HeartbeatRequest, context: Context[Needs]) -> HeartbeatResponse:
    """Say that a member is alive, and hear whether it has to join again."""
    service = context.node.groups
    try:
        service.open(request.group_id)
    except KafkaError as error:
        return HeartbeatResponse(error_code=error.code)
    with service.settling(context.now):
        error_code = service.coordinator.heartbeat(request, context.now)
    return HeartbeatResponse(error_code=error_code)


def leave_group(request: LeaveGroupRequest, context: Context[Needs]) -> LeaveGroupResponse:
    """Be a member no longer; or have static members removed by their instance ids."""
    service = context.node.groups
    one_only = context.version < SEVERAL_LEAVE_SINCE
    identities = [MemberIdentity(member_id=request.member_id)] if one_only else request.members
    try:
        service.open(request.group_id)
    except KafkaError as error:
        return LeaveGroupResponse(error_code=error.code)
    with service.settling(context.now):
        response = service.coordinator.leave(request, identities, context.now)
    if one_only and response.members:
        return LeaveGroupResponse(error_code=response.members[0].error_code)
    return response
