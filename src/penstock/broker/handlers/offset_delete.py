"""OffsetDelete (47): remove committed offsets of topics that no member of the group subscribes to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.broker.context import Context
from penstock.broker.groups.offsets import PartitionKey
from penstock.common.logs import logger_named
from penstock.errors import KafkaError, StorageError
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.messages.offset_delete_request import OffsetDeleteRequest
from penstock.protocol.messages.offset_delete_response import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode

logger = logger_named("penstock.broker")


def offset_delete(request: OffsetDeleteRequest, context: Context[ServingNode]) -> OffsetDeleteResponse:
    """Remove committed offsets of topics that no member of the group subscribes to."""
    service = context.node.groups
    try:
        kept = _subscribed(request.group_id, context)
        response = OffsetDeleteResponse()
        doomed: list[PartitionKey] = []
        for topic in request.topics:
            answer = OffsetDeleteResponseTopic(name=topic.name)
            response.topics.append(answer)
            for partition in topic.partitions:
                tp = topic.name, partition.partition_index
                error = _check_delete(tp, kept, context)
                if not error:
                    doomed.append(tp)
                answer.partitions.append(
                    OffsetDeleteResponsePartition(partition_index=partition.partition_index, error_code=error)
                )
        service.remove(request.group_id, doomed, context.now_ms)
    except KafkaError as failure:
        return OffsetDeleteResponse(error_code=failure.code)
    except StorageError as failure:
        logger.error("%s", failure)
        return OffsetDeleteResponse(error_code=ErrorCode.NOT_COORDINATOR)
    return response


def _subscribed(group_id: str, context: Context[ServingNode]) -> set[str] | None:
    """Return the topics that members of a group subscribe to, or None if subscriptions cannot be read.

    Raises:
        KafkaError: GROUP_ID_NOT_FOUND (69), NON_EMPTY_GROUP (68) if the members are not consumers,
            INVALID_GROUP_ID (24), or the log cannot be read.
    """
    if not group_id:
        raise error_for(ErrorCode.INVALID_GROUP_ID, "a group needs an id")
    group = context.node.groups.open(group_id)
    consumer = context.node.groups.consumer.groups.get(group_id)
    if consumer is not None:
        return set(consumer.stored.subscribed_topics())
    streams = context.node.groups.streams.groups.get(group_id)
    if streams is not None:
        return set(streams.subscribed_topics())
    if group is None:
        raise error_for(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {group_id}")
    if group.can_be_deleted:
        return set()
    if not group.is_of_consumers:
        raise error_for(ErrorCode.NON_EMPTY_GROUP, f"group {group_id} has members")
    return group.subscribed_topics()


def _check_delete(tp: PartitionKey, kept: set[str] | None, context: Context[ServingNode]) -> ErrorCode:
    topic = context.node.cluster.topics.get(tp[0])
    if topic is None or not 0 <= tp[1] < len(topic.partitions):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if kept is None or tp[0] in kept:
        return ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    return ErrorCode.NONE
