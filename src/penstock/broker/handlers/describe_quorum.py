"""DescribeQuorum (55): the one voter of the metadata log, and the brokers that read the log (KIP-595).

v1 adds the times of replicas' last fetches; v2 error messages, directory ids and the addresses of the nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.broker.context import Context
from penstock.broker.partitions.internal_topics import METADATA_TOPIC
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.describe_quorum_request import DescribeQuorumRequest
from penstock.protocol.messages.describe_quorum_response import (
    DescribeQuorumResponse,
    Listener,
    Node,
    PartitionData,
    ReplicaState,
    TopicData,
)

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode
    from penstock.broker.metadata.cluster_view import MetadataObserver

LISTENER = "PLAINTEXT"
NODES_SINCE, TIMES_SINCE = 2, 1


def _unknown(index: int) -> PartitionData:
    return PartitionData(partition_index=index, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def describe_quorum(request: DescribeQuorumRequest, context: Context[ServingNode]) -> DescribeQuorumResponse:
    """Describe the quorum of the metadata log: its only voter is the leader, the brokers are observers."""
    asked = [(topic.topic_name, [p.partition_index for p in topic.partitions]) for topic in request.topics]
    if asked != [(METADATA_TOPIC, [0])]:
        unknown: dict[str, dict[int, None]] = {}
        for name, indexes in asked:
            unknown.setdefault(name, {}).update(dict.fromkeys(indexes))
        return DescribeQuorumResponse(
            topics=[
                TopicData(topic_name=name, partitions=[_unknown(index) for index in indexes])
                for name, indexes in unknown.items()
            ]
        )
    node = context.node
    quorum = node.view.quorum(context.session)
    end_offset = node.cluster.metadata_end_offset
    has_times = context.version >= TIMES_SINCE
    voter = ReplicaState(replica_id=quorum.leader_id, log_end_offset=end_offset)
    if has_times:
        voter.last_fetch_timestamp = voter.last_caught_up_timestamp = context.now_ms
    partition = PartitionData(
        leader_id=quorum.leader_id,
        leader_epoch=node.cluster.metadata_epoch,
        high_watermark=end_offset,
        current_voters=[voter],
        observers=[_observer_state(each, has_times) for each in quorum.observers],
    )
    response = DescribeQuorumResponse(topics=[TopicData(topic_name=METADATA_TOPIC, partitions=[partition])])
    if context.version >= NODES_SINCE:
        voter.replica_directory_id = quorum.directory_id
        leader = Node(node_id=quorum.leader_id)
        if quorum.address is not None:
            host, port = quorum.address
            leader.listeners = [Listener(name=LISTENER, host=host, port=port)]
        response.nodes = [leader]
    return response


def _observer_state(observer: MetadataObserver, has_times: bool) -> ReplicaState:
    state = ReplicaState(replica_id=observer.node, log_end_offset=observer.end_offset)
    if has_times:
        state.last_fetch_timestamp = observer.heard_ms
        state.last_caught_up_timestamp = observer.caught_up_ms
    return state
