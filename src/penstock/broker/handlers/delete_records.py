"""DeleteRecords (21): raise the start offsets of partitions.

Records below the start offset become invisible to every reader at once; the files are deleted when all
records of their segments are below it. The new start offset is on disk before the response is sent, so that
no restart makes the records visible again. The response also waits until all live replicas have this start
offset, so that a new leader does not return the records either.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from penstock.broker.context import Context
from penstock.broker.requests.purgatory import Wait
from penstock.broker.requests.repetition import merged
from penstock.common.logs import logger_named
from penstock.errors import KafkaError, StorageError
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from penstock.protocol.messages.delete_records_response import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode
    from penstock.broker.partitions.partition import Partition

logger = logger_named("penstock.broker")

NO_OFFSET = -1


class _Deletion(NamedTuple):
    """A deletion done at the partition's leader; other replicas may lack the start offset `offset` yet."""

    partition: Partition
    offset: int
    result: DeleteRecordsPartitionResult


def delete_records(
    request: DeleteRecordsRequest, context: Context[ServingNode]
) -> DeleteRecordsResponse | Wait:
    """Raise the start offsets of partitions. Offset -1 means the high watermark.

    If a live replica does not adopt the start offset within the request's timeout, the partition's error is
    REQUEST_TIMED_OUT (7), as in Apache Kafka. Its records are deleted at the leader nevertheless.
    """
    deletions: list[_Deletion] = []
    topics = [
        DeleteRecordsTopicResult(
            name=topic.name,
            partitions=[_delete(topic, partition, context, deletions) for partition in topic.partitions],
        )
        for topic in merged(
            request.topics, lambda topic: topic.name, "partitions", lambda asked: asked.partition_index
        )
    ]
    response = DeleteRecordsResponse(topics=topics)
    if deletions:
        try:
            context.node.store.end_checkpoint(())
        except StorageError as error:
            logger.error("%s", error)
            for deletion in deletions:
                _refuse(deletion.result, ErrorCode.KAFKA_STORAGE_ERROR)
            return response
    return _wait_for_replicas(response, deletions, context, context.arrived + request.timeout_ms / 1000)


def _wait_for_replicas(
    response: DeleteRecordsResponse,
    deletions: Sequence[_Deletion],
    context: Context[ServingNode],
    deadline: float,
) -> DeleteRecordsResponse | Wait:
    """Wait until all live replicas have the new start offsets, or until `deadline` (s); then respond."""
    waiting = []
    for deletion in deletions:
        partition, result = deletion.partition, deletion.result
        if not partition.leads:
            _refuse(result, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            continue
        result.low_watermark = partition.low_watermark
        if result.low_watermark < deletion.offset:
            waiting.append(deletion)
    if waiting and context.node.clock.monotonic() < deadline:
        keys = [(deletion.partition, "fetched") for deletion in waiting]
        return Wait(keys, deadline, answer=lambda: _wait_for_replicas(response, waiting, context, deadline))
    for deletion in waiting:
        _refuse(deletion.result, ErrorCode.REQUEST_TIMED_OUT)
    return response


def _refuse(result: DeleteRecordsPartitionResult, code: ErrorCode) -> None:
    result.error_code, result.low_watermark = code, NO_OFFSET


def _delete(
    topic: DeleteRecordsTopic,
    asked: DeleteRecordsPartition,
    context: Context[ServingNode],
    deletions: list[_Deletion],
) -> DeleteRecordsPartitionResult:
    result = DeleteRecordsPartitionResult(partition_index=asked.partition_index, low_watermark=NO_OFFSET)
    try:
        found = context.node.cluster.topic(topic.name)
        if found.is_internal:
            raise error_for(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic.name} is the cluster's own topic")
        partition = found.partition(asked.partition_index)
        result.low_watermark = partition.delete_records(asked.offset)
        deletions.append(_Deletion(partition, result.low_watermark, result))
    except KafkaError as error:
        result.error_code = error.code
    except StorageError as error:
        logger.error("%s", error)
        result.error_code = ErrorCode.KAFKA_STORAGE_ERROR
    return result
