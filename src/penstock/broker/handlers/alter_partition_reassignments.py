"""AlterPartitionReassignments (45): move replicas to other brokers (KIP-455).

In v1 the client may forbid a change of the replication factor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.broker.context import Context
from penstock.errors import KafkaError, StorageError
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
)
from penstock.protocol.messages.alter_partition_reassignments_response import (
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode


SIZE_SINCE = 1


def alter_partition_reassignments(
    request: AlterPartitionReassignmentsRequest, context: Context[ServingNode]
) -> AlterPartitionReassignmentsResponse:
    """Begin, replace or cancel reassignments of partitions."""
    same_size = context.version >= SIZE_SINCE and not request.allow_replication_factor_change
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_message=None,
        responses=[
            ReassignableTopicResponse(
                name=topic.name,
                partitions=[_reassign(topic.name, each, same_size, context) for each in topic.partitions],
            )
            for topic in request.topics
        ],
    )


def _reassign(
    topic: str, wanted: ReassignablePartition, same_size: bool, context: Context[ServingNode]
) -> ReassignablePartitionResponse:
    result = ReassignablePartitionResponse(partition_index=wanted.partition_index, error_message=None)
    try:
        context.node.view.reassign(
            topic, wanted.partition_index, wanted.replicas, same_size=same_size, now_ms=context.now_ms
        )
    except KafkaError as error:
        result.error_code, result.error_message = error.code, error.detail
    except StorageError as error:
        result.error_code, result.error_message = ErrorCode.REQUEST_TIMED_OUT, str(error)
    return result
