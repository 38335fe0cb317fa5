"""DescribeGroups (15), ListGroups (16) and DeleteGroups (42): what administrators ask.

DescribeGroups, versions 0-6: v3 authorized operations; v4 instance ids; v6 a group that is not there is an
error (69) with a message, before it was a group in state Dead. ListGroups, versions 0-5: v4 states, to see
and to choose by; v5 types likewise. DeleteGroups, versions 0-3: v3 messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from penstock.broker.context import Context, Parts
from penstock.broker.groups.classic.coordinator import CLASSIC
from penstock.broker.groups.classic.group import Group
from penstock.broker.groups.classic.member import Member
from penstock.broker.groups.classic.states import State
from penstock.common.logs import logger_named
from penstock.errors import KafkaError, StorageError
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.delete_groups_request import DeleteGroupsRequest
from penstock.protocol.messages.delete_groups_response import DeletableGroupResult, DeleteGroupsResponse
from penstock.protocol.messages.describe_groups_request import DescribeGroupsRequest
from penstock.protocol.messages.describe_groups_response import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsResponse,
)
from penstock.protocol.messages.list_groups_request import ListGroupsRequest
from penstock.protocol.messages.list_groups_response import ListedGroup, ListGroupsResponse

if TYPE_CHECKING:
    from penstock.broker.groups.service import GroupService

logger = logger_named("penstock.broker")

NOT_FOUND_SINCE = 6

NOT_ASKED = -(2**31)
MEMBER_BYTES = 24
"""What a member takes in an answer beside its names and data."""

GROUP_OPERATIONS = sum(1 << operation for operation in (3, 6, 8, 10, 11))
"""Read, delete, describe, and describe and alter configs."""


class Needs(Parts, Protocol):
    """The parts of a broker that this API works on."""

    @property
    def groups(self) -> GroupService: ...


def describe_groups(request: DescribeGroupsRequest, context: Context[Needs]) -> DescribeGroupsResponse:
    """Describe groups by their ids, those that do not exist as dead; each once, however often it is named."""
    context.begin_claims()
    groups = [_describe(group_id, context) for group_id in dict.fromkeys(request.groups)]
    if request.include_authorized_operations:
        for group in groups:
            if not group.error_code:
                group.authorized_operations = GROUP_OPERATIONS
    return DescribeGroupsResponse(groups=groups)


def _describe(group_id: str, context: Context[Needs]) -> DescribedGroup:
    try:
        group = context.node.groups.open(group_id)
    except KafkaError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code)
    context.node.groups.settle(context.now)
    if group is None or context.node.groups.coordinator.groups.get(group_id) is not group:
        described = DescribedGroup(group_id=group_id, group_state=State.DEAD)
        if context.version >= NOT_FOUND_SINCE:
            described.error_code = ErrorCode.GROUP_ID_NOT_FOUND
            described.error_message = f"Group {group_id} not found."
        return described
    is_stable = group.state is State.STABLE
    context.claim(sum(_size(member, group.protocol) for member in group.members.values()))
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol or "") if is_stable else "",
        members=_members(group, is_stable),
    )


def _size(member: Member, protocol: str | None) -> int:
    """About how many bytes of an answer a member takes."""
    names = len(member.id) + len(member.instance_id or "") + len(member.client_id) + len(member.client_host)
    return names + len(member.metadata(protocol)) + len(member.assignment) + MEMBER_BYTES


def _members(group: Group, is_stable: bool) -> list[DescribedGroupMember]:
    """The members. What they say counts in a stable group only; what they own stays until it is new."""
    return [
        DescribedGroupMember(
            member_id=member.id,
            group_instance_id=member.instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            member_metadata=member.metadata(group.protocol) if is_stable else b"",
            member_assignment=member.assignment,
        )
        for member in group.members.values()
    ]


def list_groups(request: ListGroupsRequest, context: Context[Needs]) -> ListGroupsResponse:
    """List the groups there are."""
    service = context.node.groups
    service.open_all()
    service.settle(context.now)
    return ListGroupsResponse(
        groups=[
            ListedGroup(
                group_id=group.id,
                protocol_type=group.protocol_type or "",
                group_state=group.state,
                group_type=CLASSIC,
            )
            for group in service.coordinator.listed(request.states_filter, request.types_filter)
        ]
    )


def delete_groups(request: DeleteGroupsRequest, context: Context[Needs]) -> DeleteGroupsResponse:
    """Delete groups in which nobody is, with their offsets."""
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
        group = service.open(group_id)
        if group is None:
            return ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found."
        code = service.delete(group, context.now_ms)
        return code, f"Group {group_id} is in {group.state} state." if code else ""
    except KafkaError as error:
        return error.code, error.detail
    except StorageError as error:
        logger.error("%s", error)
        return ErrorCode.NOT_COORDINATOR, str(error)
