"""ShareAcknowledge (79): acknowledge records that a member of a share group has acquired (KIP-932).

v1 is the lowest version. v2 may renew acquisition locks (`is_renew_ack`), and its response has the lock
timeout.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.broker.context import Context
from penstock.broker.handlers.share_groups import NOT_OFFERED, has_share_groups
from penstock.broker.requests.purgatory import Wait
from penstock.broker.sharing.acknowledging import Acknowledging
from penstock.broker.sharing.sessions import FINAL_EPOCH, FIRST_EPOCH, member_of
from penstock.errors import KafkaError
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.messages.share_acknowledge_request import ShareAcknowledgeRequest
from penstock.protocol.messages.share_acknowledge_response import (
    PartitionData,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)
from penstock.security.acls import Operation

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode


def share_acknowledge(
    request: ShareAcknowledgeRequest, context: Context[ServingNode]
) -> ShareAcknowledgeResponse | Wait:
    """Apply the acknowledgements for each partition, and respond once their effects are stored."""
    if not has_share_groups(context):
        return ShareAcknowledgeResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, error_message=NOT_OFFERED)
    service = context.node.sharing
    try:
        member = member_of(request.group_id, request.member_id)
        if request.share_session_epoch == FIRST_EPOCH:
            raise error_for(
                ErrorCode.INVALID_SHARE_SESSION_EPOCH, "an acknowledgement does not begin a share session"
            )
        session = service.sessions.find(member, request.share_session_epoch)
    except KafkaError as error:
        return ShareAcknowledgeResponse(error_code=error.code, error_message=error.detail)
    acknowledging = Acknowledging(
        service, member, reads(context), context.now, with_renewals=request.is_renew_ack
    )
    for topic in request.topics:
        for asked in topic.partitions:
            acknowledging.begin((topic.topic_id, asked.partition_index), asked.acknowledgement_batches)
    if request.share_session_epoch == FINAL_EPOCH:
        service.close(session)
    lock_ms = service.settings_of(member.group_id).lock_duration_ms

    def answer() -> ShareAcknowledgeResponse | Wait:
        if not acknowledging.settle(context.now):
            return Wait(acknowledging.keys, acknowledging.deadline, answer=answer)
        topics: dict[bytes, ShareAcknowledgeTopicResponse] = {}
        for (topic_id, index), code in acknowledging.codes.items():
            found = topics.setdefault(topic_id, ShareAcknowledgeTopicResponse(topic_id=topic_id))
            found.partitions.append(PartitionData(partition_index=index, error_code=code))
        return ShareAcknowledgeResponse(acquisition_lock_timeout_ms=lock_ms, responses=list(topics.values()))

    return answer()


def reads(context: Context[ServingNode]) -> Callable[[str], bool]:
    """Return a function that returns True if the client of a request may read a topic."""
    authorizer, session = context.node.authorizer, context.session
    if authorizer is None:
        return lambda topic: True
    rights = authorizer.rights(session.principal, session.client_address)
    return lambda topic: rights.on_topic(Operation.READ, topic)
