"""ListPartitionReassignments (46), version 0: partitions whose replicas are being reassigned (KIP-455)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.broker.context import Context
from penstock.protocol.messages.list_partition_reassignments_request import (
    ListPartitionReassignmentsRequest,
)
from penstock.protocol.messages.list_partition_reassignments_response import (
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode


def list_partition_reassignments(
    request: ListPartitionReassignmentsRequest, context: Context[ServingNode]
) -> ListPartitionReassignmentsResponse:
    """List the reassignments in progress of the partitions that the request names, or of all."""
    wanted = None
    if request.topics is not None:
        wanted = [(topic.name, index) for topic in request.topics for index in topic.partition_indexes]
    topics: dict[str, OngoingTopicReassignment] = {}
    for name, partition in context.node.view.moving(wanted):
        assigned, _, adding, removing, *_ = partition.replicas
        topics.setdefault(name, OngoingTopicReassignment(name=name)).partitions.append(
            OngoingPartitionReassignment(
                partition_index=partition.index,
                replicas=list(assigned),
                adding_replicas=list(adding),
                removing_replicas=list(removing),
            )
        )
    return ListPartitionReassignmentsResponse(error_message=None, topics=list(topics.values()))
