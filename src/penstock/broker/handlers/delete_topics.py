"""DeleteTopics (20): delete topics with their data.

v1 adds the throttle time; v3 TOPIC_DELETION_DISABLED (73) instead of INVALID_REQUEST (42) if deletion is
switched off; v5 error messages; v6 topics by name or id.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from penstock.broker.context import Context
from penstock.broker.metadata.planning import Planner, excess_code
from penstock.broker.metadata.replica_manager import Topic
from penstock.errors import KafkaError, StorageError
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from penstock.protocol.messages.delete_topics_response import DeletableTopicResult, DeleteTopicsResponse
from penstock.protocol.since import DELETE_TOPICS_DISABLED_ERROR_SINCE, DELETE_TOPICS_QUOTA_ERROR_SINCE
from penstock.protocol.uuid import ZERO_UUID

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode


def delete_topics(request: DeleteTopicsRequest, context: Context[ServingNode]) -> DeleteTopicsResponse:
    """Delete the topics in the request, with their data; answer waiting Fetch requests for them."""
    asked = request.topics or [DeleteTopicState(name=name) for name in request.topic_names]
    named = Counter(_named(state, context) for state in asked)
    ways = Counter(key for key, _, _ in {(_named(s, context), s.name, s.topic_id) for s in asked})
    excess = excess_code(context.version >= DELETE_TOPICS_QUOTA_ERROR_SINCE)
    planner = Planner(context.node.cluster, excess, context.mutations)
    results: list[DeletableTopicResult] = []
    doomed: dict[bytes, tuple[Topic, DeletableTopicResult]] = {}
    for state in {_named(state, context): state for state in asked}.values():
        result = DeletableTopicResult(name=state.name, topic_id=state.topic_id)
        results.append(result)
        try:
            if named[_named(state, context)] > 1:
                if ways[_named(state, context)] > 1:  # by name and by id
                    known = _find(state, context)
                    result.name, result.topic_id = known.name, known.id
                raise error_for(ErrorCode.INVALID_REQUEST, "a topic is named more than once")
            topic = _find(state, context)
            planner.removal(len(topic.partitions))
        except KafkaError as error:
            result.error_code, result.error_message = error.code, error.detail
            continue
        result.name, result.topic_id = topic.name, topic.id
        doomed[topic.id] = topic, result
    try:
        context.node.cluster.delete_topics([topic for topic, _ in doomed.values()], context.now_ms)
    except StorageError as error:
        for _, result in doomed.values():
            result.error_code, result.error_message = ErrorCode.KAFKA_STORAGE_ERROR, str(error)
    else:
        for topic, _ in doomed.values():
            for partition in topic.partitions:
                context.node.purgatory.notify(partition, _ANY_AMOUNT)
        context.node.forget_topics([topic.name for topic, _ in doomed.values()], context.now_ms)
    return DeleteTopicsResponse(responses=results)


def _find(state: DeleteTopicState, context: Context[ServingNode]) -> Topic:
    node = context.node
    if not node.config.boolean("delete.topic.enable"):
        is_new = context.version >= DELETE_TOPICS_DISABLED_ERROR_SINCE
        code = ErrorCode.TOPIC_DELETION_DISABLED if is_new else ErrorCode.INVALID_REQUEST
        raise error_for(code, "delete.topic.enable is false")
    if state.name is None:
        if state.topic_id == ZERO_UUID:
            raise error_for(
                ErrorCode.INVALID_REQUEST, "a topic is deleted by name or by id; neither is given"
            )
        return node.cluster.topic_by_id(state.topic_id)
    if state.topic_id != ZERO_UUID:
        raise error_for(ErrorCode.INVALID_REQUEST, "a topic is deleted by name or by id, not both")
    return node.cluster.topic(state.name)


def _named(state: DeleteTopicState, context: Context[ServingNode]) -> tuple[str | None, bytes]:
    """Return a key to find repeated topics: it is equal for a topic's name and the topic's id.

    For an unknown topic, or an entry with both name and id, the key consists of the entry's name and id.
    """
    topics, by_id = context.node.cluster.topics, context.node.cluster.topics_by_id
    topic = topics.get(state.name) if state.name is not None else by_id.get(state.topic_id)
    if topic is None or (state.name is not None and state.topic_id != ZERO_UUID):
        return state.name, state.topic_id
    return None, topic.id


_ANY_AMOUNT = 1 << 62
"""A number of bytes above the `min_bytes` of any Fetch: a notification with it ends the wait of every
Fetch.
"""
