"""ListConfigResources (74), versions 0-1: what has settings.

v0 asks for subscriptions to client metrics, of which there are none; v1 for any kind of resource.
"""

from __future__ import annotations

from penstock.broker.cluster import BROKER_RESOURCE, TOPIC_RESOURCE
from penstock.broker.dispatch import Context, handler
from penstock.protocol.api import ApiKey
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.list_config_resources_request import ListConfigResourcesRequest
from penstock.protocol.messages.list_config_resources_response import (
    ConfigResource,
    ListConfigResourcesResponse,
)

BROKER_LOGGER, CLIENT_METRICS, GROUP = 8, 16, 32
KINDS = (TOPIC_RESOURCE, BROKER_RESOURCE, BROKER_LOGGER, CLIENT_METRICS, GROUP)


@handler(ApiKey.LIST_CONFIG_RESOURCES, 0, 1)
def list_config_resources(
    request: ListConfigResourcesRequest, context: Context
) -> ListConfigResourcesResponse:
    """List the resources of the kinds asked for; no kind means all of them."""
    if context.version == 0:
        return ListConfigResourcesResponse()
    kinds = set(request.resource_types) or set(KINDS)
    if not kinds <= set(KINDS):
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    found: list[ConfigResource] = []
    if TOPIC_RESOURCE in kinds:
        found += [
            ConfigResource(resource_name=name, resource_type=TOPIC_RESOURCE)
            for name in context.node.cluster.topics
        ]
    if BROKER_RESOURCE in kinds:
        found.append(ConfigResource(resource_name=str(context.node.node_id), resource_type=BROKER_RESOURCE))
    return ListConfigResourcesResponse(config_resources=found)
