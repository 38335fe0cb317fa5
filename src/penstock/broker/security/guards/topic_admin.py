"""Guards of APIs that describe, create and delete topics."""

from __future__ import annotations

from typing import Any

from penstock.broker.security.guards.guard import Asking, extended, masked, split, with_fields
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.field_values import NOT_ASKED
from penstock.protocol.since import DELETE_TOPICS_IDS_SINCE, METADATA_TOPIC_IDS_SINCE
from penstock.protocol.uuid import ZERO_UUID
from penstock.security.acls import FITTING_OPERATIONS, Operation, ResourceType

_REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


def cluster_operations(operations: int, asking: Asking) -> int:
    """Return the authorized-operations field of the cluster, or 0 without DESCRIBE on the cluster."""
    if operations == NOT_ASKED:
        return operations
    if not asking.rights.on_cluster(Operation.DESCRIBE):
        return 0
    return masked(operations, asking.rights, ResourceType.CLUSTER, "kafka-cluster")


def guard_metadata(request: Any, asking: Asking) -> Any:
    """Require DESCRIBE on each topic.

    A topic without this permission is refused if the request names it, even if it does not exist. A request
    for all topics gets only permitted topics. Automatic creation requires CREATE as well, on the cluster or
    the topic.
    """
    from penstock.protocol.messages.metadata_response import MetadataResponseTopic

    context, rights = asking.context, asking.rights
    asked = request.topics
    more: list[Any] = []
    if asked is not None and (context.version > 0 or asked):
        takes_ids = context.version >= METADATA_TOPIC_IDS_SINCE
        by_id = takes_ids and any(each.topic_id != ZERO_UUID for each in asked)
        allowed = []
        for each in asked:
            if by_id:
                name = asking.topic_name(each.topic_id)
                if name is None or rights.on_topic(Operation.DESCRIBE, name):
                    allowed.append(each)
                else:
                    more.append(MetadataResponseTopic(error_code=_REFUSED, name=None, topic_id=each.topic_id))
            elif each.name is None or _may_see_or_make(each.name, request, asking):
                allowed.append(each)
            else:
                more.append(MetadataResponseTopic(error_code=_REFUSED, name=each.name, topic_id=ZERO_UUID))
        # A topic is described once, also a refused one.
        more = list({(each.name, each.topic_id): each for each in more}.values())
        if context.version == 0 and not allowed:
            # An empty list means all topics, which the answer then leaves out.
            none = with_fields(request, topics=[])
            return asking.then(none, lambda response: _with_topics(response, more))
        request = with_fields(request, topics=allowed)

    def complete(response: Any) -> Any:
        kept = []
        for topic in response.topics:
            if topic.name is not None:
                if not topic.error_code and not rights.on_topic(Operation.DESCRIBE, topic.name):
                    continue
                topic.topic_authorized_operations = masked(
                    topic.topic_authorized_operations, rights, ResourceType.TOPIC, topic.name
                )
            kept.append(topic)
        response.cluster_authorized_operations = cluster_operations(
            response.cluster_authorized_operations, asking
        )
        return _with_topics(response, [*kept, *more])

    return asking.then(request, complete)


def _with_topics(response: Any, topics: list[Any]) -> Any:
    response.topics = topics
    return response


def _may_see_or_make(name: str, request: Any, asking: Asking) -> bool:
    rights, node = asking.rights, asking.context.node
    if not rights.on_topic(Operation.DESCRIBE, name):
        return False
    if name in node.cluster.topics:
        return True
    makes = request.allow_auto_topic_creation and node.config.boolean("auto.create.topics.enable")
    return not makes or rights.on_cluster(Operation.CREATE) or rights.on_topic(Operation.CREATE, name)


def guard_describe_topic_partitions(request: Any, asking: Asking) -> Any:
    """Require DESCRIBE on each topic.

    A topic without this permission is refused if the request names it, and left out if the request means all
    topics.
    """
    from penstock.protocol.messages.describe_topic_partitions_request import TopicRequest
    from penstock.protocol.messages.describe_topic_partitions_response import DescribeTopicPartitionsResponse

    rights = asking.rights
    more: list[Any] = []
    if request.topics:
        allowed, refused = split(
            request.topics, lambda topic: rights.on_topic(Operation.DESCRIBE, topic.name)
        )
        cursor = request.cursor.topic_name if request.cursor is not None else ""
        more = asking.refused("topics", [topic for topic in refused if topic.name >= cursor], _REFUSED)
    else:
        names = asking.context.node.cluster.topics
        allowed = [TopicRequest(name=name) for name in names if rights.on_topic(Operation.DESCRIBE, name)]
    if not allowed:
        # An empty list would mean all topics.
        return DescribeTopicPartitionsResponse(topics=more)

    def complete(response: Any) -> Any:
        for topic in response.topics:
            if topic.name is not None:
                topic.topic_authorized_operations = (
                    rights.operations(ResourceType.TOPIC, topic.name) & FITTING_OPERATIONS[ResourceType.TOPIC]
                )
        response.topics = [*response.topics, *more]
        return response

    return asking.then(with_fields(request, topics=allowed), complete)


def guard_create_topics(request: Any, asking: Asking) -> Any:
    """Require CREATE on the cluster or on each topic.

    Without DESCRIBE_CONFIGS on a topic, its result has no settings.
    """
    rights = asking.rights
    may_make_all = rights.on_cluster(Operation.CREATE)
    allowed, refused = split(
        request.topics, lambda topic: may_make_all or rights.on_topic(Operation.CREATE, topic.name)
    )
    more = asking.refused("topics", {topic.name: topic for topic in refused}.values(), _REFUSED)
    for each in more:
        each.error_message, each.configs = "Authorization failed.", []

    def complete(response: Any) -> Any:
        for topic in response.topics:
            if not topic.error_code and not rights.on_topic(Operation.DESCRIBE_CONFIGS, topic.name):
                topic.num_partitions = topic.replication_factor = -1
                topic.configs = []
                topic.topic_config_error_code = _REFUSED
        response.topics = [*response.topics, *more]
        return response

    return asking.then(with_fields(request, topics=allowed), complete)


def guard_delete_topics(request: Any, asking: Asking) -> Any:
    """Require DELETE on the cluster or on each topic; hide topics that the principal may not describe."""
    from penstock.protocol.messages.delete_topics_request import DeleteTopicState

    rights, has_ids = asking.rights, asking.context.version >= DELETE_TOPICS_IDS_SINCE
    may_delete_all = rights.on_cluster(Operation.DELETE)
    more: list[Any] = []

    def judge(name: str | None, topic_id: bytes) -> bool:
        known = name if name is not None else asking.topic_name(topic_id)
        if known is None or may_delete_all:
            return True
        is_seen = rights.on_topic(Operation.DESCRIBE, known)
        if name is not None and is_seen and name not in asking.context.node.cluster.topics:
            return True  # answered with error 3
        if rights.on_topic(Operation.DELETE, known) and (is_seen or name is None):
            return True
        shown = known if name is not None or is_seen else None
        item = DeleteTopicState(name=shown, topic_id=topic_id) if has_ids else shown
        more.extend(asking.refused("responses", (item,), _REFUSED))
        return False

    if has_ids:
        allowed = [each for each in request.topics if judge(each.name, each.topic_id)]
        request = with_fields(request, topics=allowed)
    else:
        names = [name for name in request.topic_names if judge(name, ZERO_UUID)]
        request = with_fields(request, topic_names=names)
    return asking.then(request, extended("responses", more))


def guard_describe_cluster(request: Any, asking: Asking) -> Any:
    """Allow the request to every client; authorized operations are 0 without DESCRIBE on the cluster."""

    def complete(response: Any) -> Any:
        response.cluster_authorized_operations = cluster_operations(
            response.cluster_authorized_operations, asking
        )
        return response

    return asking.then(request, complete)
