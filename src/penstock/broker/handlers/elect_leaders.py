"""ElectLeaders (43): elect the preferred replica as leader, or any live replica (KIP-460).

v1 adds the election type, and an error for the whole response.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.broker.context import Context
from penstock.broker.requests.repetition import merged
from penstock.errors import KafkaError, StorageError
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.messages.elect_leaders_request import ElectLeadersRequest
from penstock.protocol.messages.elect_leaders_response import (
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode

ELECTION_TYPES = (0, 1)
"""The types of elections: 0 elects the preferred leader, 1 any live replica (unclean)."""


def elect_leaders(request: ElectLeadersRequest, context: Context[ServingNode]) -> ElectLeadersResponse:
    """Elect the leaders of the requested partitions.

    The response to a request for all partitions has no results for elections that were not needed.
    """
    kind = request.election_type
    if request.topic_partitions is None:
        if kind not in ELECTION_TYPES:
            return ElectLeadersResponse(error_code=ErrorCode.INVALID_REQUEST)
        results = []
        for topic in list(context.node.cluster.topics.values()):
            found = [_elect(topic.name, index, kind, context) for index in range(len(topic.partitions))]
            needed = [each for each in found if each.error_code != ErrorCode.ELECTION_NOT_NEEDED]
            results.append(ReplicaElectionResult(topic=topic.name, partition_result=needed))
        return ElectLeadersResponse(replica_election_results=results)
    refused = kind not in ELECTION_TYPES and request.topic_partitions and context.version
    return ElectLeadersResponse(
        error_code=ErrorCode.INVALID_REQUEST if refused else ErrorCode.NONE,
        replica_election_results=[
            ReplicaElectionResult(
                topic=topic.topic,
                partition_result=[_elect(topic.topic, index, kind, context) for index in topic.partitions],
            )
            for topic in merged(request.topic_partitions, lambda topic: topic.topic, "partitions")
        ],
    )


def _elect(topic: str, index: int, kind: int, context: Context[ServingNode]) -> PartitionResult:
    result = PartitionResult(partition_id=index, error_message=None)
    try:
        if kind not in ELECTION_TYPES:
            raise error_for(ErrorCode.INVALID_REQUEST, f"there is no election of type {kind}")
        context.node.view.elect(topic, index, kind, context.now_ms)
    except KafkaError as error:
        result.error_code, result.error_message = error.code, error.detail
    except StorageError as error:
        result.error_code, result.error_message = ErrorCode.REQUEST_TIMED_OUT, str(error)
    return result
