"""AlterPartitionReassignments (45): move replicas, which is possible to this broker only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from penstock.broker.context import Context, Parts
from penstock.errors import KafkaError
from penstock.protocol.error_codes import ErrorCode, error_for
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
    from penstock.broker.metadata.cluster import Cluster


class Needs(Parts, Protocol):
    """The parts of a broker that this API works on."""

    cluster: Cluster

    @property
    def node_id(self) -> int: ...


def alter_partition_reassignments(
    request: AlterPartitionReassignmentsRequest, context: Context[Needs]
) -> AlterPartitionReassignmentsResponse:
    """Accept what is so already, refuse the rest."""
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_message=None,
        responses=[
            ReassignableTopicResponse(
                name=topic.name,
                partitions=[_reassign(topic.name, partition, context) for partition in topic.partitions],
            )
            for topic in request.topics
        ],
    )


def _reassign(
    topic: str, wanted: ReassignablePartition, context: Context[Needs]
) -> ReassignablePartitionResponse:
    result = ReassignablePartitionResponse(partition_index=wanted.partition_index, error_message=None)
    here = context.node.node_id
    try:
        context.node.cluster.topic(topic).partition(wanted.partition_index)
        replicas = wanted.replicas
        if replicas is None:
            raise error_for(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "no replica of this partition is moving")
        if list(replicas) != [here]:
            raise error_for(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"replicas on brokers {list(replicas)}; there is only broker {here}",
            )
    except KafkaError as error:
        result.error_code, result.error_message = error.code, error.detail
    return result
