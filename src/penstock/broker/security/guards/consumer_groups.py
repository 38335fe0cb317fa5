"""Guards of the APIs of consumer groups (KIP-848)."""

from __future__ import annotations

from typing import Any

from penstock.broker.security.guards.guard import MESSAGES, Asking, masked, split, with_fields
from penstock.protocol.error_codes import ErrorCode
from penstock.security.acls import Operation, ResourceType

_NO_GROUP = ErrorCode.GROUP_AUTHORIZATION_FAILED
_NO_TOPIC = ErrorCode.TOPIC_AUTHORIZATION_FAILED


def guard_consumer_group_heartbeat(request: Any, asking: Asking) -> Any:
    """READ on the group, DESCRIBE on each topic in the request: without one of them all of it is refused."""
    from penstock.protocol.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse

    rights = asking.rights
    code = ErrorCode.NONE
    if not rights.on_group(Operation.READ, request.group_id):
        code = _NO_GROUP
    elif not all(rights.on_topic(Operation.DESCRIBE, name) for name in request.subscribed_topic_names or ()):
        code = _NO_TOPIC
    if code:
        return ConsumerGroupHeartbeatResponse(error_code=code, error_message=MESSAGES[code])
    return asking.proceed(request)


def guard_consumer_group_describe(request: Any, asking: Asking) -> Any:
    """DESCRIBE on each group, and on each topic that its members have or subscribe to."""
    from penstock.protocol.messages.consumer_group_describe_response import DescribedGroup

    rights = asking.rights
    allowed, refused = split(request.group_ids, lambda name: rights.on_group(Operation.DESCRIBE, name))
    more = [
        DescribedGroup(group_id=name, error_code=_NO_GROUP, error_message=MESSAGES[_NO_GROUP])
        for name in refused
    ]

    def complete(response: Any) -> Any:
        for group in response.groups:
            if not all(rights.on_topic(Operation.DESCRIBE, name) for name in _topics_of(group)):
                group.error_code, group.error_message = _NO_TOPIC, MESSAGES[_NO_TOPIC]
                group.members = []
            group.authorized_operations = masked(
                group.authorized_operations, rights, ResourceType.GROUP, group.group_id
            )
        response.groups = [*response.groups, *more]
        return response

    return asking.then(with_fields(request, group_ids=allowed), complete)


def _topics_of(group: Any) -> set[str]:
    names: set[str] = set()
    for member in group.members:
        names.update(member.subscribed_topic_names)
        for assignment in (member.assignment, member.target_assignment):
            names.update(topic.topic_name for topic in assignment.topic_partitions)
    return names
