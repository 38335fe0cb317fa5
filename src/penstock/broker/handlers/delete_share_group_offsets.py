"""DeleteShareGroupOffsets (92): delete the offsets of topics in a share group without members (KIP-932)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.broker.context import Context
from penstock.broker.handlers.alter_share_group_offsets import NO_PARTITION
from penstock.broker.handlers.share_groups import PATIENCE_S, late, open_group
from penstock.broker.requests.later import Later
from penstock.errors import KafkaError
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.delete_share_group_offsets_request import DeleteShareGroupOffsetsRequest
from penstock.protocol.messages.delete_share_group_offsets_response import (
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode


def delete_share_group_offsets(request: DeleteShareGroupOffsetsRequest, context: Context[ServingNode]) -> Any:
    """Delete the states of all share partitions of the topics in the request."""
    service = context.node.groups
    try:
        open_group(request.group_id, context)
        group = service.share.find_empty(request.group_id)
        later = Later(context.node.purgatory)
        noted = group.initialization
        topics: list[DeleteShareGroupOffsetsResponseTopic] = []
        names: dict[bytes, str] = {}
        answers: dict[bytes, DeleteShareGroupOffsetsResponseTopic] = {}
        for asked in request.topics:
            answer = DeleteShareGroupOffsetsResponseTopic(topic_name=asked.topic_name)
            topics.append(answer)
            found = context.node.cluster.topics.get(asked.topic_name)
            if found is not None and (found.id in noted.initialized or found.id in noted.deleting):
                names[found.id], answers[found.id] = asked.topic_name, answer
                answer.topic_id = found.id
                answer.error_code, answer.error_message = late().code, late().detail
            else:
                answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                answer.error_message = (
                    NO_PARTITION if found is None else "There is no offset information to delete."
                )
        if names:

            def take(results: Any) -> None:
                for topic_id, result in results.items():
                    answers[topic_id].error_code, answers[topic_id].error_message = result

            service.share.delete_offsets(service.store, group, names, later.expect(take))
    except KafkaError as error:
        return DeleteShareGroupOffsetsResponse(error_code=error.code, error_message=error.detail)
    return later.answer(context.now + PATIENCE_S, lambda: DeleteShareGroupOffsetsResponse(responses=topics))
