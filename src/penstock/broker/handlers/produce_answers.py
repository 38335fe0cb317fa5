"""Responses to Produce: each partition's result, sent after waiting for flushes and replicas."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

from penstock.broker.context import CloseConnection, Context
from penstock.broker.partitions.validation import MisshapenRecords, RejectedRecords
from penstock.broker.requests.purgatory import Wait
from penstock.errors import KafkaError, StorageError
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.produce_response import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.broker.handlers.serving_node import ServingNode
    from penstock.broker.partitions.partition import Partition
    from penstock.broker.partitions.upkeep.flusher import FlushTask
    from penstock.broker.transactions.service import Joining
    from penstock.protocol.messages.produce_request import TopicProduceData

STORAGE_ERROR_SINCE = 4

FLUSH_PATIENCE_S = 3600
"""The seconds for which a response waits for a flush. If the device takes longer, the flush counts as
failed.
"""

_WITHOUT_START_OFFSET = (
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.RECORD_LIST_TOO_LARGE,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
)


class Flushing(NamedTuple):
    """Records of one partition that must reach the disk before `response` is sent."""

    flush: FlushTask
    response: PartitionProduceResponse


def answer(
    responses: list[TopicProduceResponse],
    acks: int,
    context: Context[ServingNode],
    flushes: list[Flushing],
) -> ProduceResponse | Wait | None:
    """Return the Produce response, after all records of the request have been appended or refused.

    On a single broker, acks above 1 (Kafka 0.8) have the effect of 1, because there is only one replica.
    """
    if acks == 0:
        _hang_up_on_failure(responses)
        return None
    if flushes:
        return _wait_for_flushes(responses, flushes, context)
    return ProduceResponse(responses=responses)


def _wait_for_flushes(
    responses: list[TopicProduceResponse], flushes: list[Flushing], context: Context[ServingNode]
) -> ProduceResponse | Wait:
    """Return a `Wait` that ends with the flushes that `flush.messages` requires, and yields the response."""
    response = ProduceResponse(responses=responses)

    def report() -> ProduceResponse:
        for flush, partition in flushes:
            if flush.failure is not None:
                code = ErrorCode.KAFKA_STORAGE_ERROR
                if context.version < STORAGE_ERROR_SINCE:
                    code = ErrorCode.NOT_LEADER_OR_FOLLOWER
                partition.error_code, partition.base_offset = code, -1
                partition.error_message = str(flush.failure)
        return response

    keys = list(dict.fromkeys(flush for flush, _ in flushes))
    return Wait(keys, context.now + FLUSH_PATIENCE_S, len(keys), report)


def copy_outcome(response: PartitionProduceResponse, outcome: PartitionProduceResponse) -> None:
    """Copy a partition's late result into the entry that the response already has for it."""
    for name in outcome.__slots__:
        setattr(response, name, getattr(outcome, name))


def answered_start_offset(partition: Partition, error: KafkaError, joining: Joining | None) -> int:
    """Return the log start offset for a refused batch's response entry; -1 for errors where Kafka has -1."""
    if joining is not None and joining.has_refused:
        joining.has_refused = False
        return -1
    if error.code in _WITHOUT_START_OFFSET or isinstance(error, MisshapenRecords):
        return -1
    return partition.log_start_offset


def refuse_all(topics: Iterable[TopicProduceData], error: KafkaError) -> list[TopicProduceResponse]:
    """Return the results of all partitions of a request that is refused as a whole."""
    return [
        TopicProduceResponse(
            name=topic.name,
            topic_id=topic.topic_id,
            partition_responses=[refuse(data.index, error) for data in topic.partition_data],
        )
        for topic in topics
    ]


def refuse(index: int, error: KafkaError, log_start_offset: int = -1) -> PartitionProduceResponse:
    """Return the result for a partition whose records are refused."""
    response = PartitionProduceResponse(
        index=index,
        error_code=error.code,
        base_offset=-1,
        log_start_offset=log_start_offset,
        error_message=error.detail,
    )
    if isinstance(error, RejectedRecords):
        response.record_errors = [
            BatchIndexAndErrorMessage(batch_index=record, batch_index_error_message=reason)
            for record, reason in error.records
        ]
    return response


def report_storage(
    index: int, error: StorageError, context: Context[ServingNode]
) -> PartitionProduceResponse:
    """Log that records could not be written, and return the result for their partition."""
    context.node.limited_log.once(logging.ERROR, str(error))
    is_new = context.version >= STORAGE_ERROR_SINCE
    code = ErrorCode.KAFKA_STORAGE_ERROR if is_new else ErrorCode.NOT_LEADER_OR_FOLLOWER
    return PartitionProduceResponse(index=index, error_code=code, base_offset=-1, error_message=str(error))


def _hang_up_on_failure(responses: list[TopicProduceResponse]) -> None:
    """Close the connection if an append with acks=0 has failed: there is no response to report it.

    Raises:
        CloseConnection: a partition has an error.
    """
    for topic in responses:
        for partition in topic.partition_responses:
            if partition.error_code:
                raise CloseConnection(
                    f"Produce with acks=0 to {topic.name}-{partition.index} failed: {partition.error_message}"
                )
