"""FindCoordinator (10), versions 0-6.

v1 key types (0 group, 1 transaction, 2 share group from v6 on) and messages; v4 several keys. Neither
groups nor transactions are offered, so the answer is COORDINATOR_NOT_AVAILABLE, which says why.
"""

from __future__ import annotations

from penstock.broker.dispatch import Context, handler
from penstock.protocol.api import ApiKey
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from penstock.protocol.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse

SEVERAL_KEYS_SINCE = 4
SHARE_GROUPS_SINCE = 6

_OFFERED = {0: "consumer groups", 1: "transactions", 2: "share groups"}


@handler(ApiKey.FIND_COORDINATOR, 0, 6)
def find_coordinator(request: FindCoordinatorRequest, context: Context) -> FindCoordinatorResponse:
    """Say that there is no coordinator."""
    kind = _OFFERED.get(request.key_type)
    if kind is None or (request.key_type == 2 and context.version < SHARE_GROUPS_SINCE):
        code, message = ErrorCode.INVALID_REQUEST, f"coordinator key type {request.key_type} is unknown"
    else:
        code, message = ErrorCode.COORDINATOR_NOT_AVAILABLE, f"this broker offers no {kind}"
    if context.version < SEVERAL_KEYS_SINCE:
        return FindCoordinatorResponse(error_code=code, error_message=message, node_id=-1, port=-1)
    return FindCoordinatorResponse(
        coordinators=[
            Coordinator(key=key, node_id=-1, port=-1, error_code=code, error_message=message)
            for key in request.coordinator_keys
        ]
    )
