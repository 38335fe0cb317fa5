"""DeleteGroups (42): delete groups without members, with their offsets. v3 adds error messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.broker.context import Context
from penstock.broker.groups.share.group import ShareGroup
from penstock.broker.handlers.share_groups import PATIENCE_S
from penstock.broker.requests.later import Later
from penstock.common.logs import logger_named
from penstock.errors import KafkaError, StorageError
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.delete_groups_request import DeleteGroupsRequest
from penstock.protocol.messages.delete_groups_response import DeletableGroupResult, DeleteGroupsResponse

if TYPE_CHECKING:
    from penstock.broker.groups.share_service import Result
    from penstock.broker.handlers.serving_node import ServingNode

logger = logger_named("penstock.broker")


def delete_groups(request: DeleteGroupsRequest, context: Context[ServingNode]) -> Any:
    """Delete groups without members, with their offsets. Return the response, or a `Wait` for it."""
    later = Later(context.node.purgatory)
    results = []
    for group_id in dict.fromkeys(request.groups_names):
        result = DeletableGroupResult(group_id=group_id)
        results.append(result)
        _delete(group_id, result, later, context)
    return later.answer(context.now + PATIENCE_S, lambda: DeleteGroupsResponse(results=results))


def _delete(group_id: str, result: DeletableGroupResult, later: Later, context: Context[ServingNode]) -> None:
    service = context.node.groups
    try:
        group = service.find(group_id)
        if group is None:
            _fill(result, ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        elif isinstance(group, ShareGroup):
            late = ErrorCode.COORDINATOR_NOT_AVAILABLE, "the share coordinator has not answered"
            _fill(result, *late)

            def take(outcome: Result) -> None:
                _fill(result, *outcome)

            service.share.delete(service.store, group, context.now_ms, later.expect(take))
        else:
            code = service.delete(group, context.now_ms)
            _fill(result, code, f"Group {group_id} is in {group.state} state." if code else None)
    except KafkaError as error:
        _fill(result, error.code, error.detail)
    except StorageError as error:
        logger.error("%s", error)
        _fill(result, ErrorCode.NOT_COORDINATOR, str(error))


def _fill(result: DeletableGroupResult, code: int, message: str | None) -> None:
    result.error_code, result.error_message = code, message
