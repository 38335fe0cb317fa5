"""ElectLeaders (43): each partition has one replica, which leads it.

v1 the kind of election, and an error for the whole answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from penstock.broker.context import Context, Parts
from penstock.broker.requests.repetition import merged
from penstock.errors import KafkaError
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.messages.elect_leaders_request import ElectLeadersRequest
from penstock.protocol.messages.elect_leaders_response import (
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

if TYPE_CHECKING:
    from penstock.broker.metadata.cluster import Cluster

ELECTION_TYPES = (0, 1)
"""The preferred leader, or any at all (unclean)."""


class Needs(Parts, Protocol):
    """The parts of a broker that this API works on."""

    cluster: Cluster


def elect_leaders(request: ElectLeadersRequest, context: Context[Needs]) -> ElectLeadersResponse:
    """Answer that every named partition has its leader; for all partitions, an empty list of failures."""
    if request.topic_partitions is None:
        if request.election_type not in ELECTION_TYPES:
            return ElectLeadersResponse(error_code=ErrorCode.INVALID_REQUEST)
        names = context.node.cluster.topics
        return ElectLeadersResponse(replica_election_results=[ReplicaElectionResult(topic=n) for n in names])
    refused = request.election_type not in ELECTION_TYPES and request.topic_partitions and context.version
    return ElectLeadersResponse(
        error_code=ErrorCode.INVALID_REQUEST if refused else ErrorCode.NONE,
        replica_election_results=[
            ReplicaElectionResult(
                topic=topic.topic,
                partition_result=[
                    _elect(topic.topic, n, request.election_type, context) for n in topic.partitions
                ],
            )
            for topic in merged(request.topic_partitions, lambda topic: topic.topic, "partitions")
        ],
    )


def _elect(topic: str, index: int, kind: int, context: Context[Needs]) -> PartitionResult:
    try:
        if kind not in ELECTION_TYPES:
            raise error_for(ErrorCode.INVALID_REQUEST, f"there is no election of type {kind}")
        context.node.cluster.topic(topic).partition(index)
    except KafkaError as error:
        return PartitionResult(partition_id=index, error_code=error.code, error_message=error.detail)
    return PartitionResult(
        partition_id=index,
        error_code=ErrorCode.ELECTION_NOT_NEEDED,
        error_message="Leader election not needed for topic partition.",
    )
