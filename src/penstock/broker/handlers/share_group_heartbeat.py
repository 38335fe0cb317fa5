"""ShareGroupHeartbeat (76): join a share group, stay in it, get an assignment, leave it (KIP-932).

v1 is the lowest version; v0 was a preview in Apache Kafka 4.0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.broker.context import Context
from penstock.broker.groups.metadata_view import by_topic
from penstock.broker.groups.share.group import ShareAnswer, ShareHeartbeat
from penstock.broker.handlers.share_groups import has_share_groups
from penstock.errors import KafkaError
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from penstock.protocol.messages.share_group_heartbeat_response import (
    Assignment,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode


def share_group_heartbeat(
    request: ShareGroupHeartbeatRequest, context: Context[ServingNode]
) -> ShareGroupHeartbeatResponse:
    """Join a share group, stay in it or leave it; the response has the assignment if it has changed."""
    if not has_share_groups(context):
        return ShareGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    names = request.subscribed_topic_names
    beat = ShareHeartbeat(
        request.member_id,
        request.member_epoch,
        request.rack_id,
        None if names is None else tuple(names),
        context.session.client_id or "",
        f"/{context.session.client_address}",
    )
    try:
        answer = context.node.groups.share_heartbeat(request.group_id, beat, context.now)
    except KafkaError as error:
        return ShareGroupHeartbeatResponse(error_code=error.code, error_message=error.detail)
    return _response(answer)


def _response(answer: ShareAnswer) -> ShareGroupHeartbeatResponse:
    assignment = None
    if answer.assignment is not None:
        assignment = Assignment(
            topic_partitions=[
                TopicPartitions(topic_id=topic_id, partitions=indexes)
                for topic_id, indexes in by_topic(answer.assignment).items()
            ]
        )
    return ShareGroupHeartbeatResponse(
        member_id=answer.member_id,
        member_epoch=answer.epoch,
        heartbeat_interval_ms=answer.heartbeat_interval_ms,
        assignment=assignment,
    )
