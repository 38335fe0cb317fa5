"""CreateTopics (19): create topics, or only validate the request.

v1 adds `validate_only` and error messages; v2 the throttle time; v4 accepts -1 for the broker's default
numbers of partitions and replicas; v5 partitions, replication factor and settings in the response; v7 the
topic id.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from penstock.broker.context import Context
from penstock.broker.metadata.planning import PlannedTopic, Planner, excess_code
from penstock.broker.partitions.internal_topics import METADATA_TOPIC
from penstock.errors import KafkaError, StorageError
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from penstock.protocol.messages.create_topics_response import (
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsResponse,
)
from penstock.protocol.since import CREATE_TOPICS_QUOTA_ERROR_SINCE
from penstock.protocol.uuid import random_uuid

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode

SETTINGS_SINCE = 5

SETTING_BYTES = 60
"""The approximate size in bytes of one setting in a response."""


def create_topics(request: CreateTopicsRequest, context: Context[ServingNode]) -> CreateTopicsResponse:
    """Check every topic, then create the valid ones, all in one metadata write."""
    cluster = context.node.cluster
    context.begin_claims()
    counts = Counter(topic.name for topic in request.topics)
    results: dict[str, CreatableTopicResult] = {}
    plans: list[PlannedTopic] = []
    excess = excess_code(context.version >= CREATE_TOPICS_QUOTA_ERROR_SINCE)
    planner = Planner(cluster, excess, context.mutations)
    for wanted in request.topics:
        try:
            plan = _plan(wanted, counts[wanted.name], planner)
        except KafkaError as error:
            results[wanted.name] = _failure(wanted.name, error.code, error.detail)
        else:
            plans.append(plan)
            results[plan.name] = _success(plan, context)
    if request.validate_only:
        for plan in plans:  # the id that the topic would have had
            results[plan.name].topic_id = random_uuid()
    else:
        try:
            for topic in cluster.create_topics(plans, context.now_ms):
                results[topic.name].topic_id = topic.id
        except StorageError as error:
            for plan in plans:
                results[plan.name] = _failure(plan.name, ErrorCode.KAFKA_STORAGE_ERROR, str(error))
    return CreateTopicsResponse(topics=list(results.values()))


def _plan(wanted: CreatableTopic, times: int, planner: Planner) -> PlannedTopic:
    if times > 1:
        raise error_for(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    if wanted.name == METADATA_TOPIC:
        text = f"Creation of internal topic {METADATA_TOPIC} is prohibited."
        raise error_for(ErrorCode.INVALID_REQUEST, text)
    configs = {config.name: config.value for config in wanted.configs}
    plan = planner.new_topic(
        wanted.name, wanted.num_partitions, wanted.replication_factor, _assignments(wanted), configs
    )
    if configs:
        from penstock.broker.config.alterations import check_lengths  # few topics have settings of their own

        check_lengths(configs)
    return plan


def _assignments(wanted: CreatableTopic) -> dict[int, list[int]]:
    """Return the broker ids that the request assigns to partitions, as a dict by partition index.

    Raises:
        KafkaError: INVALID_REPLICA_ASSIGNMENT (39), a partition occurs twice.
    """
    found = {assignment.partition_index: assignment.broker_ids for assignment in wanted.assignments}
    if len(found) < len(wanted.assignments):
        raise error_for(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "a partition is assigned twice")
    return found


def _success(plan: PlannedTopic, context: Context[ServingNode]) -> CreatableTopicResult:
    # Nothing has been created yet: an answer that becomes too large refuses the whole request.
    keys = plan.config.broker.topic_keys.values() if context.version >= SETTINGS_SINCE else ()
    names = [key.name for key in keys if not key.is_hidden or key.name in plan.config.overrides]
    context.claim(len(plan.name) + SETTING_BYTES * len(names))
    return CreatableTopicResult(
        name=plan.name,
        error_message=None,
        num_partitions=plan.partitions,
        replication_factor=plan.replication_factor,
        configs=[
            CreatableTopicConfigs(
                name=name, value=plan.config.text(name), config_source=plan.config.source(name)
            )
            for name in names
        ],
    )


def _failure(name: str, code: int, message: str) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=code, error_message=message, configs=[])
