"""DescribeGroups (15): state and members of groups.

v3 adds authorized operations; v4 instance ids. For a group that does not exist, v6 and later have
GROUP_ID_NOT_FOUND (69) with a message; earlier versions have state Dead and no error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from penstock.broker.context import Context
from penstock.broker.groups.classic.group import ClassicGroup
from penstock.broker.groups.classic.member import Member
from penstock.broker.groups.classic.states import State
from penstock.broker.groups.tables import not_found, not_of_type
from penstock.errors import KafkaError
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.error_response import error_response
from penstock.protocol.messages.describe_groups_request import DescribeGroupsRequest
from penstock.protocol.messages.describe_groups_response import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsResponse,
)

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode

R = TypeVar("R")

Describe: TypeAlias = "Callable[[str, Context[Any]], Any]"
"""A function that returns the response entry of a group; it is called with the group id and the context."""

NOT_FOUND_SINCE = 6

MEMBER_BYTES = 24
"""The approximate size in bytes of a member in a response, without its ids, metadata and assignment."""

GROUP_OPERATIONS = sum(1 << operation for operation in (3, 6, 8, 10, 11))
"""A bit field of the operations on a group: read, delete, describe, describe configs, alter configs."""


def describe_groups(request: DescribeGroupsRequest, context: Context[ServingNode]) -> DescribeGroupsResponse:
    """Describe groups by their ids; a group that is named repeatedly is described once.

    A group that does not exist is described as dead, from v6 on with GROUP_ID_NOT_FOUND (69).
    """
    return DescribeGroupsResponse(groups=_describe_each(request.groups, request, context, _describe))


def describe_kind(
    response: Callable[..., R], request: Any, context: Context[Any], describe: Describe, *, is_offered: bool
) -> R:
    """Return the response of an API that describes groups of one type by their ids, each id once.

    If `is_offered` is False, the broker has no groups of this type: every id gets UNSUPPORTED_VERSION (35).
    """
    request.group_ids = list(dict.fromkeys(request.group_ids))
    if not is_offered:
        refused: R = error_response(request.API_KEY, context.version, request, ErrorCode.UNSUPPORTED_VERSION)
        return refused
    return response(groups=_describe_each(request.group_ids, request, context, describe))


def missing_message(group_id: str, group_type: str, context: Context[Any]) -> str:
    """Return the error message for a group that does not exist, or is of another type than `group_type`."""
    is_other = context.node.groups.find(group_id) is not None
    return not_of_type(group_id, group_type) if is_other else not_found(group_id)


def _describe_each(
    group_ids: Iterable[str], request: Any, context: Context[Any], describe: Describe
) -> list[Any]:
    context.begin_claims()
    groups = [describe(group_id, context) for group_id in dict.fromkeys(group_ids)]
    if request.include_authorized_operations:
        for group in groups:
            if not group.error_code:
                group.authorized_operations = GROUP_OPERATIONS
    return groups


def _describe(group_id: str, context: Context[ServingNode]) -> DescribedGroup:
    try:
        group = context.node.groups.open(group_id)
    except KafkaError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code)
    context.node.groups.settle(context.now)
    if group is None or context.node.groups.coordinator.groups.get(group_id) is not group:
        described = DescribedGroup(group_id=group_id, group_state=State.DEAD)
        if context.version >= NOT_FOUND_SINCE:
            described.error_code = ErrorCode.GROUP_ID_NOT_FOUND
            described.error_message = missing_message(group_id, "classic", context)
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
    """Return the approximate size in bytes of a member in the response."""
    names = len(member.id) + len(member.instance_id or "") + len(member.client_id) + len(member.client_host)
    return names + len(member.metadata(protocol)) + len(member.assignment) + MEMBER_BYTES


def _members(group: ClassicGroup, is_stable: bool) -> list[DescribedGroupMember]:
    """Return the response entries of a group's members.

    Only members of a stable group have metadata. During a rebalance, members have their old assignments.
    """
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
