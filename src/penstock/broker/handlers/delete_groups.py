"""DeleteGroups (42): delete groups without members, with their offsets. v3 has messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from penstock.broker.context import Context, Parts
from penstock.common.logs import logger_named
from penstock.errors import KafkaError, StorageError
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.delete_groups_request import DeleteGroupsRequest
from penstock.protocol.messages.delete_groups_response import DeletableGroupResult, DeleteGroupsResponse

if TYPE_CHECKING:
    from penstock.broker.groups.service import GroupService

logger = logger_named("penstock.broker")


class Needs(Parts, Protocol):
    """The parts of a broker that this API works on."""

    @property
    def groups(self) -> GroupService: ...


def delete_groups(request: DeleteGroupsRequest, context: Context[Needs]) -> DeleteGroupsResponse:
    """Delete groups without members, with their offsets."""
    results = []
    for group_id in dict.fromkeys(request.groups_names):
        code, message = _delete(group_id, context)
        results.append(
            DeletableGroupResult(group_id=group_id, error_code=code, error_message=message or None)
        )
    return DeleteGroupsResponse(results=results)


def _delete(group_id: str, context: Context[Needs]) -> tuple[int, str]:
    service = context.node.groups
    try:
        group = service.find(group_id)
        if group is None:
            return ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found."
        code = service.delete(group, context.now_ms)
        return code, f"Group {group_id} is in {group.state} state." if code else ""
    except KafkaError as error:
        return error.code, error.detail
    except StorageError as error:
        logger.error("%s", error)
        return ErrorCode.NOT_COORDINATOR, str(error)
