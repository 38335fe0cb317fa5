"""JoinGroup (11): become a member of a group, or stay a member in its next generation.

v0 has one timeout, for the session and for rejoining; v1 has two separate ones; in v4 a member without an id
first gets one (error 79); v5 adds instance ids; v7 the protocol type, and a null protocol name in errors; v8
a reason; in v9 the response may ask the leader to skip the assignment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.broker.context import Context
from penstock.broker.groups.classic.group import refused_join
from penstock.broker.groups.classic.member import Caller
from penstock.broker.requests.purgatory import Wait
from penstock.common.logs import logger_named
from penstock.errors import KafkaError, StorageError
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.join_group_request import JoinGroupRequest
from penstock.protocol.messages.join_group_response import JoinGroupResponse
from penstock.protocol.since import JOIN_GROUP_TWO_TIMEOUTS_SINCE

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode

logger = logger_named("penstock.broker")

NO_PROTOCOL_SINCE = 7


def join_group(request: JoinGroupRequest, context: Context[ServingNode]) -> Any:
    """Join a group, or rejoin it when it rebalances. Return the response, or a `Wait` for it."""
    service = context.node.groups
    version = context.version
    if version < JOIN_GROUP_TWO_TIMEOUTS_SINCE:
        request.rebalance_timeout_ms = request.session_timeout_ms
    caller = Caller(context.session.client_id or "", f"/{context.session.client_address}", version)
    try:
        service.open(request.group_id)
        outcome = service.join(request, caller, context.now)
    except KafkaError as error:
        outcome = refused_join(request.member_id, ErrorCode(error.code))
    except StorageError as error:
        logger.error("%s", error)
        outcome = refused_join(request.member_id, ErrorCode.NOT_COORDINATOR)
    if isinstance(outcome, Wait):
        give = outcome.answer
        assert give is not None
        outcome.answer = lambda: _fit(give(), version)
        return outcome
    return _fit(outcome, version)


def _fit(response: Any, version: int) -> JoinGroupResponse:
    """Replace a null protocol name with "" in versions before 7, which cannot encode null."""
    assert isinstance(response, JoinGroupResponse)
    if response.protocol_name is None and version < NO_PROTOCOL_SINCE:
        response.protocol_name = ""
    return response
