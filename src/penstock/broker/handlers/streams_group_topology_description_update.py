"""StreamsGroupTopologyDescriptionUpdate (93): a member sends its topology for people to read (KIP-1331).

Apache Kafka passes the description to a plugin, and refuses it if none is configured. Penstock loads no Java
class, and always refuses it. Clients send this request only if a heartbeat response has asked for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.broker.context import Context
from penstock.broker.handlers.streams_groups import has_streams_groups
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.streams_group_topology_description_update_response import (
    StreamsGroupTopologyDescriptionUpdateResponse,
)

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode
    from penstock.protocol.messages.streams_group_topology_description_update_request import (
        StreamsGroupTopologyDescriptionUpdateRequest,
    )

NO_PLUGIN = "The broker has no streams group topology description plugin configured."


def streams_group_topology_description_update(
    request: StreamsGroupTopologyDescriptionUpdateRequest, context: Context[ServingNode]
) -> StreamsGroupTopologyDescriptionUpdateResponse:
    """Refuse the description with UNSUPPORTED_VERSION (35), as Apache Kafka does without a plugin."""
    message = NO_PLUGIN if has_streams_groups(context) else None
    return StreamsGroupTopologyDescriptionUpdateResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION, error_message=message
    )
