"""AlterConfigs (33), versions 0-2: say everything that is set for a topic or broker; the rest is default."""

from __future__ import annotations

import logging

from penstock.broker.config_changes import plan_replacement, repeated_resources
from penstock.broker.dispatch import Context, handler
from penstock.errors import KafkaError, StorageError
from penstock.protocol.api import ApiKey
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.messages.alter_configs_request import AlterConfigsRequest, AlterConfigsResource
from penstock.protocol.messages.alter_configs_response import (
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)

logger = logging.getLogger("penstock.broker")


@handler(ApiKey.ALTER_CONFIGS, 0, 2)
def alter_configs(request: AlterConfigsRequest, context: Context) -> AlterConfigsResponse:
    """Change what is set for every resource; each has its own outcome."""
    repeated = repeated_resources([(r.resource_type, r.resource_name) for r in request.resources])
    return AlterConfigsResponse(
        responses=[
            _alter(resource, (resource.resource_type, resource.resource_name) in repeated, request, context)
            for resource in request.resources
        ]
    )


def _alter(
    resource: AlterConfigsResource, is_repeated: bool, request: AlterConfigsRequest, context: Context
) -> AlterConfigsResourceResponse:
    cluster = context.node.cluster
    result = AlterConfigsResourceResponse(
        resource_type=resource.resource_type, resource_name=resource.resource_name, error_message=None
    )
    try:
        if is_repeated:
            raise error_for(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
        wanted = [(config.name, config.value) for config in resource.configs]
        records = plan_replacement(cluster, resource.resource_type, resource.resource_name, wanted)
        if not request.validate_only:
            cluster.alter_configs(records, context.now_ms)
    except KafkaError as error:
        result.error_code, result.error_message = error.code, str(error)
    except StorageError as error:
        logger.error("%s", error)
        result.error_code, result.error_message = ErrorCode.KAFKA_STORAGE_ERROR, str(error)
    return result
