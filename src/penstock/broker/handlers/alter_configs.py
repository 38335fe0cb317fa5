"""AlterConfigs (33): replace all settings of a topic or broker; those not named return to their defaults."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.broker.config.alterations import answer_each, plan_replacement
from penstock.broker.config.values import Suggestions
from penstock.broker.context import Context
from penstock.protocol.messages.alter_configs_request import AlterConfigsRequest, AlterConfigsResource
from penstock.protocol.messages.alter_configs_response import (
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from penstock.protocol.messages.config_record import ConfigRecord

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode


def alter_configs(request: AlterConfigsRequest, context: Context[ServingNode]) -> AlterConfigsResponse:
    """Replace the settings of every resource in the request; each resource has its own result."""

    def plan(resource: AlterConfigsResource, suggestions: Suggestions) -> list[ConfigRecord]:
        wanted = [(config.name, config.value) for config in resource.configs]
        return plan_replacement(
            context.node.cluster, resource.resource_type, resource.resource_name, wanted, suggestions
        )

    return AlterConfigsResponse(
        responses=answer_each(
            request.resources,
            plan,
            AlterConfigsResourceResponse,
            validate_only=request.validate_only,
            cluster=context.node.cluster,
            now_ms=context.now_ms,
        )
    )
