"""ElectLeaders (43), versions 0-2: there is nobody else to elect.

v1 the kind of election, and an error for the whole answer.
"""

from __future__ import annotations

from penstock.broker.dispatch import Context, handler
from penstock.errors import KafkaError
from penstock.protocol.api import ApiKey
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.elect_leaders_request import ElectLeadersRequest
from penstock.protocol.messages.elect_leaders_response import (
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)


@handler(ApiKey.ELECT_LEADERS, 0, 2)
def elect_leaders(request: ElectLeadersRequest, context: Context) -> ElectLeadersResponse:
    """Say of every partition that it has its leader. Asked for all, only failures would be listed: none."""
    return ElectLeadersResponse(
        replica_election_results=[
            ReplicaElectionResult(
                topic=topic.topic,
                partition_result=[_elect(topic.topic, n, context) for n in topic.partitions],
            )
            for topic in request.topic_partitions or ()
        ]
    )


def _elect(topic: str, index: int, context: Context) -> PartitionResult:
    try:
        context.node.cluster.topic(topic).partition(index)
    except KafkaError as error:
        return PartitionResult(partition_id=index, error_code=error.code, error_message=str(error))
    return PartitionResult(
        partition_id=index,
        error_code=ErrorCode.ELECTION_NOT_NEEDED,
        error_message="Leader election not needed for topic partition.",
    )
