"""Guards of APIs about groups and their offsets, and functions that hide parts of their responses."""

from __future__ import annotations

from typing import Any

from penstock.broker.security.guards.guard import Asking, masked, split, with_fields
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.field_values import GROUP_KEY, TRANSACTION_KEY
from penstock.protocol.since import (
    FIND_COORDINATOR_KEYS_SINCE,
    OFFSET_FETCH_GROUPS_SINCE,
    OFFSET_FETCH_TOPIC_IDS_SINCE,
    SYNC_GROUP_PROTOCOL_SINCE,
)
from penstock.security.acls import Operation, ResourceType

_NO_GROUP = ErrorCode.GROUP_AUTHORIZATION_FAILED
_NO_TOPIC = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_NO_TRANSACTION = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def guard_find_coordinator(request: Any, asking: Asking) -> Any:
    """Require DESCRIBE on each group or transactional id, or CLUSTER_ACTION for keys of share partitions."""

    def refusal(key: str) -> ErrorCode:
        if request.key_type == GROUP_KEY:
            return ErrorCode.NONE if asking.rights.on_group(Operation.DESCRIBE, key) else _NO_GROUP
        if request.key_type == TRANSACTION_KEY:
            may_describe = asking.rights.on_transactional_id(Operation.DESCRIBE, key)
            return ErrorCode.NONE if may_describe else _NO_TRANSACTION
        may_act = asking.rights.on_cluster(Operation.CLUSTER_ACTION)
        return ErrorCode.NONE if may_act else ErrorCode.CLUSTER_AUTHORIZATION_FAILED

    if asking.context.version < FIND_COORDINATOR_KEYS_SINCE:
        code = refusal(request.key)
        return asking.refuse(request, code) if code else asking.proceed(request)
    allowed, refused = split(dict.fromkeys(request.coordinator_keys), lambda key: not refusal(key))
    more = asking.refused("coordinators", refused, refusal(refused[0])) if refused else []
    for each in more:
        each.error_message = ""
    if not allowed:
        from penstock.protocol.messages.find_coordinator_response import FindCoordinatorResponse

        return FindCoordinatorResponse(coordinators=more)
    return asking.partly(request, "coordinator_keys", allowed, "coordinators", more)


def guard_sync_group(request: Any, asking: Asking) -> Any:
    """Require READ on the group. From version 5 on, the handler refuses requests without a protocol name."""
    names_protocol = None not in (request.protocol_type, request.protocol_name)
    is_judged = asking.context.version < SYNC_GROUP_PROTOCOL_SINCE or names_protocol
    if is_judged and not asking.rights.on_group(Operation.READ, request.group_id):
        return asking.refuse(request, _NO_GROUP)
    return asking.proceed(request)


def guard_consumer_group_heartbeat(request: Any, asking: Asking) -> Any:
    """Require READ on the group and DESCRIBE on each topic in the request, else refuse all of it."""
    rights = asking.rights
    if not rights.on_group(Operation.READ, request.group_id):
        return asking.refuse(request, _NO_GROUP)
    if not all(rights.on_topic(Operation.DESCRIBE, name) for name in request.subscribed_topic_names or ()):
        return asking.refuse(request, _NO_TOPIC)
    return asking.proceed(request)


def guard_streams_group_heartbeat(request: Any, asking: Asking) -> Any:
    """Require READ on the group and DESCRIBE on each topic of the topology, else refuse the request.

    The handler checks the right to create internal topics, since only the handler finds the missing ones.
    """
    rights = asking.rights
    if not rights.on_group(Operation.READ, request.group_id):
        return asking.refuse(request, _NO_GROUP)
    topology = request.topology
    names = () if topology is None else _topics_of_subtopologies(topology.subtopologies)
    if not all(rights.on_topic(Operation.DESCRIBE, name) for name in names):
        return asking.refuse(request, _NO_TOPIC)
    return asking.proceed(request)


def _topics_of_subtopologies(subtopologies: Any) -> set[str]:
    names: set[str] = set()
    for each in subtopologies:
        names.update(each.source_topics, each.repartition_sink_topics)
        names.update(topic.name for topic in (*each.repartition_source_topics, *each.state_changelog_topics))
    return names


def guard_offset_fetch(request: Any, asking: Asking) -> Any:
    """Require DESCRIBE on each group and topic.

    A topic without this permission is refused if the request names it, and left out if the request means all
    topics.
    """
    if asking.context.version >= OFFSET_FETCH_GROUPS_SINCE:
        return _guard_several_groups(request, asking)
    rights = asking.rights
    if not rights.on_group(Operation.DESCRIBE, request.group_id):
        return asking.refuse(request, _NO_GROUP)
    if request.topics is None:
        return asking.then(request, lambda response: _without_hidden(response, rights))
    allowed, refused = split(request.topics, lambda topic: rights.on_topic(Operation.DESCRIBE, topic.name))
    more = asking.refused("topics", refused, _NO_TOPIC)
    return asking.partly(request, "topics", allowed, "topics", more)


def _without_hidden(holder: Any, rights: Any) -> Any:
    holder.topics = [topic for topic in holder.topics if rights.on_topic(Operation.DESCRIBE, topic.name)]
    return holder


def _guard_several_groups(request: Any, asking: Asking) -> Any:
    from penstock.protocol.messages.offset_fetch_response import OffsetFetchResponse

    rights = asking.rights
    by_id = asking.context.version >= OFFSET_FETCH_TOPIC_IDS_SINCE

    def may_see(topic: Any) -> bool:
        name = asking.topic_name(topic.topic_id) if by_id else topic.name
        return name is None or rights.on_topic(Operation.DESCRIBE, name)

    allowed, refused = split(
        request.groups, lambda group: rights.on_group(Operation.DESCRIBE, group.group_id)
    )
    more = asking.refused("groups", refused, _NO_GROUP)
    hidden: dict[str, list[Any]] = {}
    everything: set[str] = set()
    for position, group in enumerate(allowed):
        if group.topics is None:
            everything.add(group.group_id)
            continue
        seen, unseen = split(group.topics, may_see)
        if unseen:
            allowed[position] = with_fields(group, topics=seen)
            hidden[group.group_id] = asking.refused("groups.topics", unseen, _NO_TOPIC)
    if not allowed:
        return OffsetFetchResponse(groups=more)

    def complete(response: Any) -> Any:
        for group in response.groups:
            if group.group_id in everything:
                group.topics = [topic for topic in group.topics if may_see(topic)]
            if not group.error_code:  # an error of the group stands for all of its topics
                group.topics = [*group.topics, *hidden.get(group.group_id, ())]
        response.groups = [*response.groups, *more]
        return response

    return asking.then(with_fields(request, groups=allowed), complete)


def guard_describe_share_group_offsets(request: Any, asking: Asking) -> Any:
    """Require DESCRIBE on each group and topic.

    A topic without this permission is refused if the request names it, and left out if the request means all
    topics.
    """
    from penstock.protocol.messages.describe_share_group_offsets_response import (
        DescribeShareGroupOffsetsResponse,
    )

    rights = asking.rights

    def may_see(topic: Any) -> bool:
        return rights.on_topic(Operation.DESCRIBE, topic.topic_name)

    allowed, refused = split(
        request.groups, lambda group: rights.on_group(Operation.DESCRIBE, group.group_id)
    )
    more = asking.refused("groups", refused, _NO_GROUP)
    hidden: dict[str, list[Any]] = {}
    for position, group in enumerate(allowed):
        seen, unseen = split(group.topics or (), may_see)
        if unseen:
            allowed[position] = with_fields(group, topics=seen)
            hidden[group.group_id] = asking.refused("groups.topics", unseen, _NO_TOPIC)
    if not allowed:
        return DescribeShareGroupOffsetsResponse(groups=more)

    def complete(response: Any) -> Any:
        for group in response.groups:
            group.topics = [topic for topic in group.topics if may_see(topic)]
            if not group.error_code:
                group.topics = [*group.topics, *hidden.get(group.group_id, ())]
        response.groups = [*response.groups, *more]
        return response

    return asking.then(with_fields(request, groups=allowed), complete)


def mask_groups(response: Any, asking: Asking) -> None:
    """Limit the authorized operations in a DescribeGroups response to those that the principal may do."""
    for group in response.groups:
        group.authorized_operations = masked(
            group.authorized_operations, asking.rights, ResourceType.GROUP, group.group_id
        )


def mask_consumer_groups(response: Any, asking: Asking) -> None:
    """Replace groups in a response by errors if a member has a topic that the principal may not describe.

    This is for the responses of ConsumerGroupDescribe and ShareGroupDescribe.
    """
    for group in response.groups:
        if not all(asking.rights.on_topic(Operation.DESCRIBE, name) for name in _topics_of(group)):
            group.error_code, group.error_message = _NO_TOPIC, "Topic authorization failed."
            group.members = []
    mask_groups(response, asking)


def mask_streams_groups(response: Any, asking: Asking) -> None:
    """Replace groups in StreamsGroupDescribe by errors if the principal may not describe their topics."""
    for group in response.groups:
        subtopologies = group.topology.subtopologies if group.topology is not None else ()
        names = _topics_of_subtopologies(subtopologies or ())
        if not all(asking.rights.on_topic(Operation.DESCRIBE, name) for name in names):
            group.error_code = _NO_TOPIC
            group.error_message = (
                "The described group uses topics that the client is not authorized to describe."
            )
            group.members, group.topology = [], None
    mask_groups(response, asking)


def _topics_of(group: Any) -> set[str]:
    names: set[str] = set()
    for member in group.members:
        names.update(member.subscribed_topic_names)
        for assignment in (member.assignment, getattr(member, "target_assignment", None)):
            if assignment is not None:  # members of share groups have no target to be shown
                names.update(topic.topic_name for topic in assignment.topic_partitions)
    return names


def hide_groups(response: Any, asking: Asking) -> None:
    """Remove groups that the principal may not describe from a ListGroups response.

    DESCRIBE on the cluster permits all groups.
    """
    rights = asking.rights
    if not rights.on_cluster(Operation.DESCRIBE):
        response.groups = [
            each for each in response.groups if rights.on_group(Operation.DESCRIBE, each.group_id)
        ]
