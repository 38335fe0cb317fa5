"""ListConfigResources (74): the resources that have settings.

v0 lists subscriptions to client metrics; v1 any type of resource.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.broker.config.resource_keys import KEPT_KINDS
from penstock.broker.context import Context
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.field_values import BROKER_RESOURCE, LOGGER_RESOURCE, METRICS_RESOURCE, TOPIC_RESOURCE
from penstock.protocol.messages.list_config_resources_request import ListConfigResourcesRequest
from penstock.protocol.messages.list_config_resources_response import (
    ConfigResource,
    ListConfigResourcesResponse,
)

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode

KINDS = {TOPIC_RESOURCE, BROKER_RESOURCE, LOGGER_RESOURCE, *KEPT_KINDS}


def list_config_resources(
    request: ListConfigResourcesRequest, context: Context[ServingNode]
) -> ListConfigResourcesResponse:
    """List the resources of the types in the request; without types, of all types."""
    kinds = {METRICS_RESOURCE} if context.version == 0 else set(request.resource_types) or KINDS
    if not kinds <= KINDS:
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    found: list[ConfigResource] = []
    if TOPIC_RESOURCE in kinds:
        found += [
            ConfigResource(resource_name=name, resource_type=TOPIC_RESOURCE)
            for name in context.node.cluster.topics
        ]
    found += [
        ConfigResource(resource_name=str(broker.id), resource_type=kind)
        for kind in (LOGGER_RESOURCE, BROKER_RESOURCE)
        if kind in kinds
        for broker in context.node.view.living(context.session)
    ]
    found += [
        ConfigResource(resource_name=name, resource_type=kind)
        for kind, name in context.node.cluster.resource_configs
        if kind in kinds
    ]
    return ListConfigResourcesResponse(config_resources=found)
