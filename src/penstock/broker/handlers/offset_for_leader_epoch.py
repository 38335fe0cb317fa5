"""OffsetForLeaderEpoch (23): the end offset of the records of a leader epoch (KIP-101, KIP-320).

v1 adds the leader epoch found; v2 the client's current leader epoch, and the throttle time; v3 the replica
id; v4 is flexible.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from penstock.broker.context import Context
from penstock.errors import KafkaError, StorageError
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
)
from penstock.protocol.messages.offset_for_leader_epoch_response import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode


def offset_for_leader_epoch(
    request: OffsetForLeaderEpochRequest, context: Context[ServingNode]
) -> OffsetForLeaderEpochResponse:
    """Return the end offset of the requested leader epoch for every partition in the request."""
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[_look_up(topic.topic, partition, context) for partition in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _look_up(topic: str, asked: OffsetForLeaderPartition, context: Context[ServingNode]) -> EpochEndOffset:
    result = EpochEndOffset(partition=asked.partition)
    try:
        partition = context.node.cluster.topic(topic).partition(asked.partition)
        partition.check_leader_epoch(asked.current_leader_epoch)
        epoch, end_offset = partition.end_of_epoch(asked.leader_epoch)
        result.end_offset = end_offset
        if context.version >= 1:
            result.leader_epoch = epoch
    except KafkaError as error:
        result.error_code = error.code
    except StorageError as error:
        context.node.limited_log.once(logging.ERROR, str(error))
        result.error_code = ErrorCode.KAFKA_STORAGE_ERROR
    return result
