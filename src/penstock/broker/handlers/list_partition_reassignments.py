"""ListPartitionReassignments (46), version 0: replicas that are moving, of which there are none."""

from __future__ import annotations

from penstock.broker.context import Context, Parts
from penstock.protocol.messages.list_partition_reassignments_request import (
    ListPartitionReassignmentsRequest,
)
from penstock.protocol.messages.list_partition_reassignments_response import (
    ListPartitionReassignmentsResponse,
)


def list_partition_reassignments(
    request: ListPartitionReassignmentsRequest, context: Context[Parts]
) -> ListPartitionReassignmentsResponse:
    """With one broker nothing can be on its way."""
    return ListPartitionReassignmentsResponse(error_message=None)
