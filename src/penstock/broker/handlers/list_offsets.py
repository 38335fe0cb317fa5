"""ListOffsets (2), versions 0-11: the offset that belongs to a time.

v0 answers with the start offsets of segments, newest first. v1 answers with one offset and its time:
that of the first record at or after the time asked for, or -1 and -1. Times below zero have a meaning:
-1 the end, -2 the start, -3 the record with the greatest time (v7), -4 the start on the local disk (v8),
-5 the end in tiered storage (v9), -6 what is to be tiered next (v11).
v2 isolation level, v4 leader epochs, v10 a timeout, which a broker without tiered storage never needs.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping

from penstock.broker.dispatch import Context, handler
from penstock.broker.partition import Partition
from penstock.broker.repetition import merged
from penstock.errors import KafkaError, StorageError
from penstock.protocol.api import ApiKey
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from penstock.protocol.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING = range(-1, -7, -1)

LEADER_EPOCH_SINCE = 4

_SINCE = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING: 11}


@handler(ApiKey.LIST_OFFSETS, 0, 11)
def list_offsets(request: ListOffsetsRequest, context: Context) -> ListOffsetsResponse:
    """Look up the time asked for in every partition."""
    times = Counter(
        (topic.name, partition.partition_index) for topic in request.topics for partition in topic.partitions
    )
    topics = merged(
        request.topics, lambda topic: topic.name, "partitions", lambda asked: asked.partition_index
    )
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(name=topic.name, partitions=_look_up_all(topic, times, context))
            for topic in topics
        ]
    )


def _look_up_all(
    topic: ListOffsetsTopic, times: Mapping[tuple[str, int], int], context: Context
) -> list[ListOffsetsPartitionResponse]:
    """One answer for every partition; INVALID_REQUEST (42) from v1 on where one is asked about twice.

    `times` tells how often the request names each partition.
    """
    return [
        _look_up(topic.name, partition, context)
        if context.version == 0 or times[topic.name, partition.partition_index] == 1
        else ListOffsetsPartitionResponse(
            partition_index=partition.partition_index, error_code=ErrorCode.INVALID_REQUEST
        )
        for partition in topic.partitions
    ]


def _look_up(name: str, asked: ListOffsetsPartition, context: Context) -> ListOffsetsPartitionResponse:
    response = ListOffsetsPartitionResponse(partition_index=asked.partition_index)
    try:
        partition = context.node.cluster.topic(name).partition(asked.partition_index)
        partition.check_leader_epoch(asked.current_leader_epoch)
        if context.version == 0:
            response.old_style_offsets = _segment_offsets(partition, asked, context.now_ms)
        else:
            found = _offset_for(partition, asked.timestamp, context.version)
            if found is not None:
                response.offset, response.timestamp = found
                if context.version >= LEADER_EPOCH_SINCE:
                    response.leader_epoch = partition.leader_epoch
    except KafkaError as error:
        response.error_code = error.code
    except StorageError as error:
        context.node.limited_log.once(logging.ERROR, str(error))
        response.error_code = ErrorCode.KAFKA_STORAGE_ERROR
    return response


def _segment_offsets(partition: Partition, asked: ListOffsetsPartition, now_ms: int) -> list[int]:
    if asked.timestamp < EARLIEST:
        raise error_for(ErrorCode.UNSUPPORTED_VERSION, f"time {asked.timestamp} in ListOffsets v0")
    if asked.max_num_offsets <= 0:
        return []
    if asked.timestamp == EARLIEST:
        return [partition.log_start_offset]
    return partition.reader.segment_offsets(asked.timestamp, now_ms)[: asked.max_num_offsets]


def _offset_for(partition: Partition, timestamp: int, version: int) -> tuple[int, int] | None:
    """The offset and time that answer a request from v1 on; None where there is no such record.

    Raises:
        KafkaError: UNSUPPORTED_VERSION (35), a special time that this version does not have.
    """
    if version < _SINCE.get(timestamp, 0) or timestamp < EARLIEST_PENDING:
        raise error_for(ErrorCode.UNSUPPORTED_VERSION, f"time {timestamp} in ListOffsets v{version}")
    if timestamp == LATEST:
        return partition.high_watermark, -1
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return partition.log_start_offset, -1
    if timestamp == MAX_TIMESTAMP:
        return partition.reader.offset_of_max_timestamp()
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING):
        return None
    return partition.reader.offset_for_timestamp(timestamp)
