"""ShareGroupDescribe (77): state, members and assignments of share groups (KIP-932)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.broker.context import Context
from penstock.broker.groups.metadata_view import by_topic
from penstock.broker.groups.settings import SIMPLE
from penstock.broker.groups.share.coordinator import GROUP_BYTES
from penstock.broker.groups.share.group import ShareGroup
from penstock.broker.groups.share.state import MEMBER_BYTES
from penstock.broker.handlers.describe_groups import describe_kind, missing_message
from penstock.broker.handlers.share_groups import has_share_groups, open_group
from penstock.errors import KafkaError
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.share_group_describe_request import ShareGroupDescribeRequest
from penstock.protocol.messages.share_group_describe_response import (
    Assignment,
    DescribedGroup,
    Member,
    ShareGroupDescribeResponse,
    TopicPartitions,
)

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode


def share_group_describe(
    request: ShareGroupDescribeRequest, context: Context[ServingNode]
) -> ShareGroupDescribeResponse:
    """Describe share groups by their ids; a group that is named repeatedly is described once."""
    return describe_kind(
        ShareGroupDescribeResponse, request, context, _describe, is_offered=has_share_groups(context)
    )


def _describe(group_id: str, context: Context[ServingNode]) -> DescribedGroup:
    service = context.node.groups
    try:
        open_group(group_id, context)
    except KafkaError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code, error_message=error.detail)
    group = service.share.groups.get(group_id)
    if group is None:
        return DescribedGroup(
            group_id=group_id,
            error_code=ErrorCode.GROUP_ID_NOT_FOUND,
            error_message=missing_message(group_id, "share", context),
        )
    stored = group.stored
    context.claim(GROUP_BYTES + MEMBER_BYTES * len(stored.members))
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state,
        group_epoch=stored.epoch,
        assignment_epoch=stored.target_epoch,
        assignor_name=SIMPLE,
        members=[_member(group, member_id, context) for member_id in stored.members],
    )


def _member(group: ShareGroup, member_id: str, context: Context[ServingNode]) -> Member:
    member, current = group.stored.members[member_id], group.stored.current(member_id)
    topics = context.node.cluster.topics_by_id
    return Member(
        member_id=member_id,
        rack_id=member.rack_id,
        member_epoch=current.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.topics),
        assignment=Assignment(
            topic_partitions=[
                TopicPartitions(topic_id=topic_id, topic_name=topics[topic_id].name, partitions=indexes)
                for topic_id, indexes in by_topic(current.assigned).items()
                if topic_id in topics
            ]
        ),
    )
