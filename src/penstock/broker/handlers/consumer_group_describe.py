"""ConsumerGroupDescribe (69): state, members and assignments of consumer groups (KIP-848).

v1 adds to each member the protocol that it uses, classic or consumer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from penstock.broker.context import Context
from penstock.broker.groups.consumer.coordinator import GROUP_BYTES
from penstock.broker.groups.consumer.group import ConsumerGroup, assignor_of
from penstock.broker.groups.consumer.state import MEMBER_BYTES, Partition
from penstock.broker.groups.metadata_view import by_topic
from penstock.broker.handlers.consumer_group_heartbeat import has_consumer_groups
from penstock.broker.handlers.describe_groups import describe_kind, missing_message
from penstock.errors import KafkaError
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from penstock.protocol.messages.consumer_group_describe_response import (
    Assignment,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode

_CLASSIC_MEMBER, _CONSUMER_MEMBER = 0, 1

MEMBER_TYPE_SINCE = 1


def consumer_group_describe(
    request: ConsumerGroupDescribeRequest, context: Context[ServingNode]
) -> ConsumerGroupDescribeResponse:
    """Describe consumer groups by their ids; a group that is named repeatedly is described once."""
    return describe_kind(
        ConsumerGroupDescribeResponse, request, context, _describe, is_offered=has_consumer_groups(context)
    )


def _describe(group_id: str, context: Context[ServingNode]) -> DescribedGroup:
    if not group_id:
        return DescribedGroup(
            group_id=group_id, error_code=ErrorCode.INVALID_GROUP_ID, error_message="a group needs an id"
        )
    service = context.node.groups
    try:
        service.open(group_id)
        service.settle(context.now)
    except KafkaError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code, error_message=error.detail)
    group = service.consumer.groups.get(group_id)
    if group is None:
        return DescribedGroup(
            group_id=group_id,
            error_code=ErrorCode.GROUP_ID_NOT_FOUND,
            error_message=missing_message(group_id, "consumer", context),
        )
    stored = group.stored
    context.claim(GROUP_BYTES + MEMBER_BYTES * len(stored.subscriptions))
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state,
        group_epoch=stored.epoch,
        assignment_epoch=stored.target_epoch,
        assignor_name=assignor_of(stored, service.consumer.settings_of(group_id)),
        members=[_member(group, member_id, context) for member_id in stored.subscriptions],
    )


def _member(group: ConsumerGroup, member_id: str, context: Context[ServingNode]) -> Member:
    stored = group.stored
    subscription, current = stored.subscriptions[member_id], stored.current(member_id)
    return Member(
        member_id=member_id,
        instance_id=subscription.instance_id,
        rack_id=subscription.rack_id,
        member_epoch=current.epoch,
        client_id=subscription.client_id,
        client_host=subscription.client_host,
        subscribed_topic_names=list(subscription.topics),
        subscribed_topic_regex=subscription.regex,
        assignment=_assignment([*current.assigned, *current.revoking], context),
        target_assignment=_assignment(stored.target(member_id), context),
        member_type=(
            -1
            if context.version < MEMBER_TYPE_SINCE
            else _CLASSIC_MEMBER
            if subscription.is_classic
            else _CONSUMER_MEMBER
        ),
    )


def _assignment(partitions: Iterable[Partition], context: Context[ServingNode]) -> Assignment:
    topics = context.node.cluster.topics_by_id
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, topic_name=topics[topic_id].name, partitions=indexes)
            for topic_id, indexes in by_topic(partitions).items()
            if topic_id in topics
        ]
    )
