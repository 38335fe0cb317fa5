"""IncrementalAlterConfigs (44), versions 0-1: set, delete, append to and subtract from single settings."""

from __future__ import annotations

import logging

from penstock.broker.config_changes import Change, plan_changes, repeated_resources
from penstock.broker.dispatch import Context, handler
from penstock.errors import KafkaError, StorageError
from penstock.protocol.api import ApiKey
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.messages.incremental_alter_configs_request import (
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from penstock.protocol.messages.incremental_alter_configs_response import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)

logger = logging.getLogger("penstock.broker")


@handler(ApiKey.INCREMENTAL_ALTER_CONFIGS, 0, 1)
def incremental_alter_configs(
    request: IncrementalAlterConfigsRequest, context: Context
) -> IncrementalAlterConfigsResponse:
    """Carry out the changes to every resource: all of one resource's, or none."""
    repeated = repeated_resources([(r.resource_type, r.resource_name) for r in request.resources])
    return IncrementalAlterConfigsResponse(
        responses=[
            _alter(resource, (resource.resource_type, resource.resource_name) in repeated, request, context)
            for resource in request.resources
        ]
    )


def _alter(
    resource: AlterConfigsResource,
    is_repeated: bool,
    request: IncrementalAlterConfigsRequest,
    context: Context,
) -> AlterConfigsResourceResponse:
    cluster = context.node.cluster
    result = AlterConfigsResourceResponse(
        resource_type=resource.resource_type, resource_name=resource.resource_name, error_message=None
    )
    try:
        if is_repeated:
            raise error_for(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
        changes = [Change(config.name, config.config_operation, config.value) for config in resource.configs]
        records = plan_changes(cluster, resource.resource_type, resource.resource_name, changes)
        if not request.validate_only:
            cluster.alter_configs(records, context.now_ms)
    except KafkaError as error:
        result.error_code, result.error_message = error.code, str(error)
    except StorageError as error:
        logger.error("%s", error)
        result.error_code, result.error_message = ErrorCode.KAFKA_STORAGE_ERROR, str(error)
    return result
