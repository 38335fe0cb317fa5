"""DescribeCluster (60).

v1 distinguishes brokers and controllers by endpoint type; v2 may include fenced brokers, of which a broker by
itself has none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from penstock.broker.context import Context, Parts
from penstock.broker.handlers.metadata import CLUSTER_OPERATIONS, NOT_ASKED
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.describe_cluster_request import DescribeClusterRequest
from penstock.protocol.messages.describe_cluster_response import (
    DescribeClusterBroker,
    DescribeClusterResponse,
)

if TYPE_CHECKING:
    from penstock.broker.metadata.cluster import Cluster

BROKERS, CONTROLLERS = 1, 2


class Needs(Parts, Protocol):
    """The parts of a broker that this API works on."""

    cluster: Cluster

    @property
    def node_id(self) -> int: ...

    rack: str | None


def describe_cluster(request: DescribeClusterRequest, context: Context[Needs]) -> DescribeClusterResponse:
    """One cluster, one broker."""
    node = context.node
    if request.endpoint_type != BROKERS:
        known = request.endpoint_type == CONTROLLERS
        return DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE if known else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            error_message="this is a broker",
            endpoint_type=BROKERS,
        )
    host, port = context.session.advertised_address
    return DescribeClusterResponse(
        cluster_id=node.cluster.cluster_id,
        controller_id=node.node_id,
        brokers=[DescribeClusterBroker(broker_id=node.node_id, host=host, port=port, rack=node.rack)],
        cluster_authorized_operations=(
            CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )
