"""AlterConfigs (33): say everything that is set for a topic or broker; the rest is default."""

from __future__ import annotations

from penstock.broker.config.alterations import ChangesConfigs, answer_each, plan_replacement
from penstock.broker.context import Context
from penstock.protocol.messages.alter_configs_request import AlterConfigsRequest, AlterConfigsResource
from penstock.protocol.messages.alter_configs_response import (
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from penstock.protocol.messages.config_record import ConfigRecord


def alter_configs(request: AlterConfigsRequest, context: Context[ChangesConfigs]) -> AlterConfigsResponse:
    """Change what is set for every resource; each has its own outcome."""

    def plan(resource: AlterConfigsResource) -> list[ConfigRecord]:
        wanted = [(config.name, config.value) for config in resource.configs]
        return plan_replacement(context.node.cluster, resource.resource_type, resource.resource_name, wanted)

    return AlterConfigsResponse(
        responses=answer_each(
            request.resources,
            plan,
            AlterConfigsResourceResponse,
            validate_only=request.validate_only,
            context=context,
        )
    )
