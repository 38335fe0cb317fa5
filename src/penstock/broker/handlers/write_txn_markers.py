"""WriteTxnMarkers (27): end transactions in partitions, for coordinators and administrators.

v1 is flexible; v2 adds the transaction version of a marker (KIP-1228).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.broker.context import Context
from penstock.errors import KafkaError
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.write_txn_markers_request import WritableTxnMarker, WriteTxnMarkersRequest
from penstock.protocol.messages.write_txn_markers_response import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode


def write_txn_markers(
    request: WriteTxnMarkersRequest, context: Context[ServingNode]
) -> WriteTxnMarkersResponse:
    """Write every transaction marker; each partition has its own result."""
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            WritableTxnMarkerPartitionResult(
                                partition_index=index, error_code=_write(marker, topic.name, index, context)
                            )
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )


def _write(marker: WritableTxnMarker, topic: str, index: int, context: Context[ServingNode]) -> ErrorCode:
    try:
        partition = context.node.cluster.topic(topic).partition(index)
    except KafkaError as error:
        return ErrorCode(error.code)
    return context.node.transactions.mark_partition(
        partition,
        marker.producer_id,
        marker.producer_epoch,
        marker.coordinator_epoch,
        marker.transaction_result,
        marker.transaction_version,
    )
