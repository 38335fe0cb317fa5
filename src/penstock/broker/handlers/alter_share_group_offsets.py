"""AlterShareGroupOffsets (91): set the start offsets of a share group without members (KIP-932)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.broker.context import Context
from penstock.broker.handlers.share_groups import PATIENCE_S, late, open_group
from penstock.broker.requests.later import Later
from penstock.errors import KafkaError
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.alter_share_group_offsets_request import AlterShareGroupOffsetsRequest
from penstock.protocol.messages.alter_share_group_offsets_response import (
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode

NO_PARTITION = "This server does not host this topic-partition."


def alter_share_group_offsets(request: AlterShareGroupOffsetsRequest, context: Context[ServingNode]) -> Any:
    """Reset the states of share partitions to the given start offsets; create the group if necessary."""
    service = context.node.groups
    try:
        open_group(request.group_id, context)
        group = service.share.find_empty(request.group_id, makes_group=True)
        later = Later(context.node.purgatory)
        topics: list[AlterShareGroupOffsetsResponseTopic] = []
        starts: dict[tuple[bytes, int], int] = {}
        answers: dict[tuple[bytes, int], AlterShareGroupOffsetsResponsePartition] = {}
        for asked in request.topics:
            found = context.node.cluster.topics.get(asked.topic_name)
            topic_id = bytes(16) if found is None else found.id
            topic = AlterShareGroupOffsetsResponseTopic(topic_name=asked.topic_name, topic_id=topic_id)
            topics.append(topic)
            count = 0 if found is None else len(found.partitions)
            for each in asked.partitions:
                answer = AlterShareGroupOffsetsResponsePartition(partition_index=each.partition_index)
                topic.partitions.append(answer)
                if 0 <= each.partition_index < count:
                    key = topic_id, each.partition_index
                    starts[key], answers[key] = each.start_offset, answer
                    answer.error_code, answer.error_message = late().code, late().detail
                else:
                    answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                    answer.error_message = NO_PARTITION
        if starts:

            def take(results: Any) -> None:
                for key, result in results.items():
                    answers[key].error_code, answers[key].error_message = result

            service.share.alter_offsets(service.store, group, starts, later.expect(take))
    except KafkaError as error:
        return AlterShareGroupOffsetsResponse(error_code=error.code, error_message=error.detail)
    return later.answer(context.now + PATIENCE_S, lambda: AlterShareGroupOffsetsResponse(responses=topics))
