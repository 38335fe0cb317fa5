"""Translation of JoinGroup before 2, LeaveGroup before 3 and FindCoordinator before 4."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.gateway.calls import NodeCall
from penstock.gateway.translation.errors import replace_codes
from penstock.gateway.translation.fields import convert
from penstock.gateway.translation.rules import answered
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from penstock.protocol.messages.find_coordinator_response import FindCoordinatorResponse
from penstock.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from penstock.protocol.messages.leave_group_response import LeaveGroupResponse
from penstock.protocol.since import FIND_COORDINATOR_KEYS_SINCE, JOIN_GROUP_TWO_TIMEOUTS_SINCE

if TYPE_CHECKING:
    from penstock.gateway.translation.rules import Steps, TranslatedRequest
    from penstock.protocol.messages.join_group_response import JoinGroupResponse


def join(asked: TranslatedRequest) -> Steps:
    """Translate a JoinGroup. After MEMBER_ID_REQUIRED (since version 4), join again with the member id.

    Version 0 has no rebalance timeout: the session timeout is used for it, as in brokers of 0.10.1.
    """
    request = convert(asked.request, asked.version, asked.target)
    if asked.version < JOIN_GROUP_TWO_TIMEOUTS_SINCE:
        request.rebalance_timeout_ms = request.session_timeout_ms
    response = yield NodeCall(asked.api_key, asked.target, request)
    if response.error_code == ErrorCode.MEMBER_ID_REQUIRED and not request.member_id:
        again = convert(request, asked.target, asked.target)
        again.member_id = response.member_id
        response = yield NodeCall(asked.api_key, asked.target, again)
    found: JoinGroupResponse = convert(response, asked.target, asked.target)
    found.skip_assignment = False  # it is for leaders with an instance id, which such clients lack
    if found.protocol_name is None:
        found.protocol_name = ""
    return answered(found, asked)


def leave(asked: TranslatedRequest) -> Steps:
    """Translate a LeaveGroup request with one member to a request with a list of members."""
    request = asked.request
    response = yield NodeCall(
        asked.api_key,
        asked.target,
        LeaveGroupRequest(group_id=request.group_id, members=[MemberIdentity(member_id=request.member_id)]),
    )
    code = response.error_code or next((each.error_code for each in response.members), 0)
    one = LeaveGroupResponse(error_code=code, throttle_time_ms=response.throttle_time_ms)
    return answered(one, asked)


def find_coordinator(asked: TranslatedRequest) -> Steps:
    """Translate a FindCoordinator request with one key to a request with a list of keys."""
    request = asked.request
    response = yield NodeCall(
        asked.api_key,
        asked.target,
        FindCoordinatorRequest(key_type=request.key_type, coordinator_keys=[request.key]),
    )
    found = FindCoordinatorResponse(throttle_time_ms=response.throttle_time_ms, node_id=-1, port=-1)
    if response.coordinators:
        one = response.coordinators[0]
        found.error_code, found.error_message = one.error_code, one.error_message
        found.node_id, found.host, found.port = one.node_id, one.host, one.port
    else:
        found.error_code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    found = convert(found, FIND_COORDINATOR_KEYS_SINCE - 1, asked.version)
    replace_codes(found, asked.version)
    return found
