"""DescribeQuorum (55): who keeps the cluster's own log (KIP-595). A quorum of one;
in a cluster of several brokers `penstock.broker.replication.answers` names its voter and who reads the log.

v1 times of fetching; v2 error messages, directory ids and the addresses of the nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from penstock.broker.context import Context, Parts
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
    from penstock.broker.metadata.cluster import Cluster
    from penstock.broker.partitions.log_store import LogStore

LISTENER = "PLAINTEXT"
NODES_SINCE, TIMES_SINCE = 2, 1


def _unknown(index: int) -> PartitionData:
    return PartitionData(partition_index=index, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


class Needs(Parts, Protocol):
    """The parts of a broker that this API works on."""

    cluster: Cluster

    @property
    def node_id(self) -> int: ...

    store: LogStore


def describe_quorum(request: DescribeQuorumRequest, context: Context[Needs]) -> DescribeQuorumResponse:
    """Describe the one voter, which leads."""
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
    end_offset = node.cluster.metadata_end_offset
    voter = ReplicaState(replica_id=node.node_id, log_end_offset=end_offset)
    if context.version >= TIMES_SINCE:
        voter.last_fetch_timestamp = voter.last_caught_up_timestamp = context.now_ms
    response = DescribeQuorumResponse(
        topics=[
            TopicData(
                topic_name=METADATA_TOPIC,
                partitions=[
                    PartitionData(
                        leader_id=node.node_id,
                        leader_epoch=node.cluster.metadata_epoch,
                        high_watermark=end_offset,
                        current_voters=[voter],
                    )
                ],
            )
        ]
    )
    if context.version >= NODES_SINCE:
        host, port = context.session.advertised_address
        voter.replica_directory_id = node.store.directory_id
        response.nodes = [
            Node(node_id=node.node_id, listeners=[Listener(name=LISTENER, host=host, port=port)])
        ]
    return response
