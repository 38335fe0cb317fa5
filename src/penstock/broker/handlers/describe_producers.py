"""DescribeProducers (61): idempotent and transactional producers that have written to partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.broker.config.topic_names import check_topic_name
from penstock.broker.context import Context
from penstock.broker.requests.repetition import merged
from penstock.common.logs import logger_named
from penstock.errors import KafkaError, StorageError
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.describe_producers_request import DescribeProducersRequest
from penstock.protocol.messages.describe_producers_response import (
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode

logger = logger_named("penstock.broker")

PRODUCER_BYTES = 40
"""The approximate size in bytes of a producer in a response."""


def describe_producers(
    request: DescribeProducersRequest, context: Context[ServingNode]
) -> DescribeProducersResponse:
    """List the producers of every partition named in the request."""
    context.begin_claims()
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[_describe(topic.name, index, context) for index in topic.partition_indexes],
            )
            for topic in merged(request.topics, lambda topic: topic.name, "partition_indexes")
        ]
    )


def _describe(topic: str, index: int, context: Context[ServingNode]) -> PartitionResponse:
    result = PartitionResponse(partition_index=index)
    try:
        check_topic_name(topic)
        partition = context.node.cluster.topic(topic).partition(index)
        partition.check_is_kept()
        producers = partition.producers()
        context.claim(PRODUCER_BYTES * len(producers))
        for producer_id, state in producers.items():
            last = state.batches[-1] if state.batches else None
            result.active_producers.append(
                ProducerState(
                    producer_id=producer_id,
                    producer_epoch=state.epoch,
                    last_sequence=last.last_sequence if last else -1,
                    last_timestamp=max(last.timestamp if last else -1, state.timestamp),
                    coordinator_epoch=state.coordinator_epoch,
                    current_txn_start_offset=state.first_offset,
                )
            )
    except KafkaError as error:
        result.error_code, result.error_message = error.code, error.detail
    except StorageError as error:
        logger.error("%s", error)
        result.error_code, result.error_message = ErrorCode.KAFKA_STORAGE_ERROR, str(error)
    return result
