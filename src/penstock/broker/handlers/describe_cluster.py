"""DescribeCluster (60): the brokers and the id of the cluster.

v1 distinguishes brokers and controllers by endpoint type; v2 may include fenced brokers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.broker.context import Context
from penstock.broker.handlers.metadata import CLUSTER_OPERATIONS
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.field_values import NOT_ASKED
from penstock.protocol.messages.describe_cluster_request import DescribeClusterRequest
from penstock.protocol.messages.describe_cluster_response import (
    DescribeClusterBroker,
    DescribeClusterResponse,
)

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode

BROKERS, CONTROLLERS = 1, 2


def describe_cluster(
    request: DescribeClusterRequest, context: Context[ServingNode]
) -> DescribeClusterResponse:
    """Return the brokers of the cluster, its id and its controller."""
    node = context.node
    if request.endpoint_type != BROKERS:
        known = request.endpoint_type == CONTROLLERS
        return DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE if known else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            error_message="this is a broker",
            endpoint_type=BROKERS,
        )
    living = node.view.living(context.session)
    named = node.view.registered(context.session) if request.include_fenced_brokers else living
    return DescribeClusterResponse(
        cluster_id=node.cluster.cluster_id,
        controller_id=node.view.controller_id(living),
        brokers=[
            DescribeClusterBroker(
                broker_id=each.id, host=each.host, port=each.port, rack=each.rack, is_fenced=each.is_fenced
            )
            for each in named
        ],
        cluster_authorized_operations=(
            CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )
