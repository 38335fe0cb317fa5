"""ListGroups (16): the groups that this broker coordinates. v4 adds states and their filter; v5 types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.broker.context import Context
from penstock.broker.groups.classic.coordinator import CLASSIC
from penstock.broker.groups.consumer.coordinator import CONSUMER
from penstock.broker.groups.share.coordinator import SHARE
from penstock.broker.groups.streams.coordinator import STREAMS
from penstock.protocol.messages.list_groups_request import ListGroupsRequest
from penstock.protocol.messages.list_groups_response import ListedGroup, ListGroupsResponse

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode


def list_groups(request: ListGroupsRequest, context: Context[ServingNode]) -> ListGroupsResponse:
    """List the groups that this broker coordinates and that match the filters."""
    service = context.node.groups
    service.open_all()
    service.settle(context.now)
    wanted = request.states_filter, request.types_filter
    return ListGroupsResponse(
        groups=[
            ListedGroup(
                group_id=group.id,
                protocol_type=group.protocol_type or "",
                group_state=group.state,
                group_type=CLASSIC,
            )
            for group in service.coordinator.listed(*wanted)
        ]
        + [
            ListedGroup(
                group_id=group.id, protocol_type=CONSUMER, group_state=group.state, group_type=CONSUMER
            )
            for group in service.consumer.coordinator.listed(*wanted)
        ]
        + [
            ListedGroup(group_id=group.id, protocol_type=SHARE, group_state=group.state, group_type=SHARE)
            for group in service.share.coordinator.listed(*wanted)
        ]
        + [
            ListedGroup(group_id=group.id, protocol_type=STREAMS, group_state=group.state, group_type=STREAMS)
            for group in service.streams.coordinator.listed(*wanted)
        ]
    )
