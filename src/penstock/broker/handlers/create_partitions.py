"""CreatePartitions (37): add partitions to topics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.broker.context import Context
from penstock.broker.metadata.planning import Planner, excess_code
from penstock.common.logs import logger_named
from penstock.errors import KafkaError, StorageError
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.messages.create_partitions_request import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from penstock.protocol.messages.create_partitions_response import (
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from penstock.protocol.since import CREATE_PARTITIONS_QUOTA_ERROR_SINCE

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode

logger = logger_named("penstock.broker")


def create_partitions(
    request: CreatePartitionsRequest, context: Context[ServingNode]
) -> CreatePartitionsResponse:
    """Increase the partition count of every topic in the request, in one metadata write.

    Each topic has its own result. A count can only grow.
    """
    cluster = context.node.cluster
    times = Counter(topic.name for topic in request.topics)
    first_of = {topic.name: topic for topic in request.topics}
    excess = excess_code(context.version >= CREATE_PARTITIONS_QUOTA_ERROR_SINCE)
    planner = Planner(cluster, excess, context.mutations)
    results = {name: CreatePartitionsTopicResult(name=name) for name in times}
    placed: dict[str, Sequence[Sequence[int]]] = {}
    for name, result in results.items():
        try:
            placed[name] = _plan(first_of[name], times[name], planner)
        except KafkaError as error:
            result.error_code, result.error_message = error.code, error.detail
    if not request.validate_only:
        try:
            cluster.add_partitions(placed, context.now_ms)
        except StorageError as error:
            logger.error("%s", error)
            for name in placed:
                results[name].error_code = ErrorCode.KAFKA_STORAGE_ERROR
                results[name].error_message = str(error)
    return CreatePartitionsResponse(results=list(results.values()))


def _plan(wanted: CreatePartitionsTopic, times: int, planner: Planner) -> Sequence[Sequence[int]]:
    if times > 1:
        raise error_for(ErrorCode.INVALID_REQUEST, "Duplicate topic in request.")
    assignments = wanted.assignments
    brokers = None if assignments is None else [list(assigned.broker_ids) for assigned in assignments]
    return planner.growth(wanted.name, wanted.count, brokers)
