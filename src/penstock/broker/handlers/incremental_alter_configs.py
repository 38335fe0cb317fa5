"""IncrementalAlterConfigs (44): set, delete, append to and subtract from single settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.broker.config.alterations import (
    SettingChange,
    answer_each,
    check_changes,
    plan_changes,
)
from penstock.broker.config.log_levels import change_levels, check_node
from penstock.broker.config.values import Suggestions
from penstock.broker.context import Context
from penstock.protocol.field_values import LOGGER_RESOURCE
from penstock.protocol.messages.config_record import ConfigRecord
from penstock.protocol.messages.incremental_alter_configs_request import (
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from penstock.protocol.messages.incremental_alter_configs_response import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode


def incremental_alter_configs(
    request: IncrementalAlterConfigsRequest, context: Context[ServingNode]
) -> IncrementalAlterConfigsResponse:
    """Change settings of every resource in the request; for each resource, all changes are made or none."""

    def plan(resource: AlterConfigsResource, suggestions: Suggestions) -> list[ConfigRecord]:
        changes = [
            SettingChange(config.name, config.config_operation, config.value) for config in resource.configs
        ]
        if resource.resource_type == LOGGER_RESOURCE:
            check_changes(changes)
            check_node(resource.resource_name, context.node.node_id)
            change_levels(changes, validate_only=request.validate_only)
            return []  # levels hold as long as the process
        return plan_changes(
            context.node.cluster, resource.resource_type, resource.resource_name, changes, suggestions
        )

    return IncrementalAlterConfigsResponse(
        responses=answer_each(
            request.resources,
            plan,
            AlterConfigsResourceResponse,
            validate_only=request.validate_only,
            cluster=context.node.cluster,
            now_ms=context.now_ms,
        )
    )
