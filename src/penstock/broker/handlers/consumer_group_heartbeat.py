"""ConsumerGroupHeartbeat (68): join a consumer group, stay in it, get an assignment, leave it (KIP-848).

In v0 the broker chooses the id of a member without one; in v1 members choose their ids, and may subscribe
by a regular expression.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from penstock.broker.context import Context
from penstock.broker.groups.consumer.group import Heartbeat, HeartbeatResult
from penstock.broker.groups.metadata_view import by_topic
from penstock.broker.handlers.streams_groups import offers_protocol
from penstock.broker.metadata.image import GROUP_FEATURE
from penstock.errors import KafkaError
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from penstock.protocol.messages.consumer_group_heartbeat_response import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from penstock.protocol.since import CONSUMER_GROUP_HEARTBEAT_OWN_IDS_SINCE
from penstock.security.acls import Operation

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode

FIRST_RELEASE = (4, 0)
"""The first release of Apache Kafka in which consumer groups (KIP-848) are on by default."""


def consumer_group_heartbeat(
    request: ConsumerGroupHeartbeatRequest, context: Context[ServingNode]
) -> ConsumerGroupHeartbeatResponse:
    """Join a consumer group, stay in it or leave it; the response has the assignment if it has changed."""
    if not has_consumer_groups(context):
        return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    member_id = request.member_id
    if (
        not member_id
        and context.version < CONSUMER_GROUP_HEARTBEAT_OWN_IDS_SINCE
        and request.member_epoch == 0
    ):
        member_id = str(uuid.uuid4())
    beat = Heartbeat(
        member_id,
        request.member_epoch,
        request.instance_id,
        request.rack_id,
        request.rebalance_timeout_ms,
        None if request.subscribed_topic_names is None else tuple(request.subscribed_topic_names),
        request.subscribed_topic_regex,
        request.server_assignor,
        None
        if request.topic_partitions is None
        else frozenset(
            (each.topic_id, index) for each in request.topic_partitions for index in each.partitions
        ),
        context.session.client_id or "",
        f"/{context.session.client_address}",
    )
    try:
        answer = context.node.groups.heartbeat(request.group_id, beat, _Sight(context), context.now)
    except KafkaError as error:
        return ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=error.detail)
    return _response(answer)


class _Sight:
    """Decides which topics a request's client may describe: a call with a topic's name returns a bool."""

    def __init__(self, context: Context[ServingNode]) -> None:
        authorizer = context.node.authorizer
        session = context.session
        self._rights = (
            None if authorizer is None else authorizer.rights(session.principal, session.client_address)
        )

    def __call__(self, topic: str) -> bool:
        return self._rights is None or self._rights.on_topic(Operation.DESCRIBE, topic)


def has_consumer_groups(context: Context[ServingNode]) -> bool:
    """Return True if the broker offers the consumer group protocol of KIP-848.

    The cluster's `group.version` must be 1, the release 4.0 or later, and
    `group.coordinator.rebalance.protocols` must name the protocol.
    """
    node = context.node
    if not node.config.behaves_since(*FIRST_RELEASE):
        return False
    return node.cluster.features.get(GROUP_FEATURE, 0) > 0 and offers_protocol(node.config, "consumer")


def _response(answer: HeartbeatResult) -> ConsumerGroupHeartbeatResponse:
    assignment = None
    if answer.assignment is not None:
        topics = by_topic(answer.assignment)
        assignment = Assignment(
            topic_partitions=[
                TopicPartitions(topic_id=topic, partitions=indexes) for topic, indexes in topics.items()
            ]
        )
    return ConsumerGroupHeartbeatResponse(
        member_id=answer.member_id,
        member_epoch=answer.epoch,
        heartbeat_interval_ms=answer.heartbeat_interval_ms,
        assignment=assignment,
    )
