"""DeleteRecords (21): raise the offset with which partitions begin.

What lies below is gone for every reader at once; the files go with their segments. The new beginning is on
the disk before the answer leaves: no restart brings records back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from penstock.broker.context import Context, Parts
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
    from penstock.broker.metadata.cluster import Cluster
    from penstock.broker.partitions.log_store import LogStore

logger = logger_named("penstock.broker")

NO_OFFSET = -1


class Needs(Parts, Protocol):
    """The parts of a broker that this API works on."""

    cluster: Cluster
    store: LogStore


def delete_records(request: DeleteRecordsRequest, context: Context[Needs]) -> DeleteRecordsResponse:
    """Raise the start offset of partitions. Offset -1 means the high watermark."""
    topics = [
        DeleteRecordsTopicResult(
            name=topic.name, partitions=[_delete(topic, partition, context) for partition in topic.partitions]
        )
        for topic in merged(
            request.topics, lambda topic: topic.name, "partitions", lambda asked: asked.partition_index
        )
    ]
    results = [partition for topic in topics for partition in topic.partitions if not partition.error_code]
    if results:
        try:
            context.node.store.end_checkpoint(())
        except StorageError as error:
            logger.error("%s", error)
            for result in results:
                result.error_code, result.low_watermark = ErrorCode.KAFKA_STORAGE_ERROR, NO_OFFSET
    return DeleteRecordsResponse(topics=topics)


def _delete(
    topic: DeleteRecordsTopic, asked: DeleteRecordsPartition, context: Context[Needs]
) -> DeleteRecordsPartitionResult:
    result = DeleteRecordsPartitionResult(partition_index=asked.partition_index, low_watermark=NO_OFFSET)
    try:
        found = context.node.cluster.topic(topic.name)
        if found.is_internal:
            raise error_for(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic.name} is the cluster's own topic")
        partition = found.partition(asked.partition_index)
        result.low_watermark = partition.delete_records(asked.offset)
    except KafkaError as error:
        result.error_code = error.code
    except StorageError as error:
        logger.error("%s", error)
        result.error_code = ErrorCode.KAFKA_STORAGE_ERROR
    return result
