"""CreatePartitions (37), versions 0-3: let topics grow."""

from __future__ import annotations

import logging
from collections import Counter

from penstock.broker.dispatch import Context, handler
from penstock.errors import KafkaError, StorageError
from penstock.protocol.api import ApiKey
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.messages.create_partitions_request import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from penstock.protocol.messages.create_partitions_response import (
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)

logger = logging.getLogger("penstock.broker")


@handler(ApiKey.CREATE_PARTITIONS, 0, 3)
def create_partitions(request: CreatePartitionsRequest, context: Context) -> CreatePartitionsResponse:
    """Add partitions to every topic named; each has its own outcome. Nobody can make one shrink."""
    times = Counter(topic.name for topic in request.topics)
    first_of = {topic.name: topic for topic in request.topics}
    results = [_grow(first_of[name], times[name], request.validate_only, context) for name in times]
    return CreatePartitionsResponse(results=results)


def _grow(
    wanted: CreatePartitionsTopic, times: int, validate_only: bool, context: Context
) -> CreatePartitionsTopicResult:
    cluster = context.node.cluster
    result = CreatePartitionsTopicResult(name=wanted.name)
    try:
        if times > 1:
            raise error_for(ErrorCode.INVALID_REQUEST, "Duplicate topic in request.")
        assignments = wanted.assignments
        brokers = None if assignments is None else [list(assigned.broker_ids) for assigned in assignments]
        topic = cluster.plan_partitions(wanted.name, wanted.count, brokers)
        if not validate_only:
            cluster.add_partitions(topic, wanted.count, context.now_ms)
    except KafkaError as error:
        result.error_code, result.error_message = error.code, error.detail
    except StorageError as error:
        logger.error("%s", error)
        result.error_code, result.error_message = ErrorCode.KAFKA_STORAGE_ERROR, str(error)
    return result
