"""Guards of APIs that act on groups, their offsets, and transactional ids."""

from __future__ import annotations

from typing import Any

from penstock.broker.security.guards.guard import (
    MESSAGES,
    Asking,
    Guard,
    masked,
    split,
    with_fields,
)
from penstock.protocol.error_codes import ErrorCode
from penstock.security.acls import Operation, ResourceType

_NO_GROUP = ErrorCode.GROUP_AUTHORIZATION_FAILED
_NO_TOPIC = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_NO_TRANSACTION = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED

TOPIC_IDS_SINCE = 10
SEVERAL_KEYS_SINCE = 4
SEVERAL_GROUPS_SINCE = 8
TOP_LEVEL_ERROR_SINCE = 2
NO_PROTOCOL_NAME_SINCE = 7
PROTOCOL_NAMED_SINCE = 5

_GROUP_KEY, _TRANSACTION_KEY = 0, 1


def guard_find_coordinator(request: Any, asking: Asking) -> Any:
    """DESCRIBE on each group or transactional id; CLUSTER_ACTION for share groups."""
    from penstock.protocol.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse

    def refusal(key: str) -> ErrorCode:
        if request.key_type == _GROUP_KEY:
            return ErrorCode.NONE if asking.rights.on_group(Operation.DESCRIBE, key) else _NO_GROUP
        if request.key_type == _TRANSACTION_KEY:
            may_describe = asking.rights.on_transactional_id(Operation.DESCRIBE, key)
            return ErrorCode.NONE if may_describe else _NO_TRANSACTION
        may_act = asking.rights.on_cluster(Operation.CLUSTER_ACTION)
        return ErrorCode.NONE if may_act else ErrorCode.CLUSTER_AUTHORIZATION_FAILED

    if asking.context.version < SEVERAL_KEYS_SINCE:
        code = refusal(request.key)
        if code:
            return FindCoordinatorResponse(
                error_code=code, error_message=MESSAGES[code], node_id=-1, host="", port=-1
            )
        return asking.proceed(request)
    allowed, refused = split(dict.fromkeys(request.coordinator_keys), lambda key: not refusal(key))
    more = [
        Coordinator(key=key, node_id=-1, host="", port=-1, error_code=refusal(key), error_message="")
        for key in refused
    ]
    if not allowed:
        return FindCoordinatorResponse(coordinators=more)
    return asking.partly(request, "coordinator_keys", allowed, "coordinators", more)


def guard_join_group(request: Any, asking: Asking) -> Any:
    """READ on the group."""
    from penstock.protocol.messages.join_group_response import JoinGroupResponse

    if asking.rights.on_group(Operation.READ, request.group_id):
        return asking.proceed(request)
    is_new = asking.context.version >= NO_PROTOCOL_NAME_SINCE
    return JoinGroupResponse(
        error_code=_NO_GROUP, generation_id=-1, protocol_name=None if is_new else "", leader="", member_id=""
    )


def on_one_group(operation: Operation, module: str, name: str) -> Guard:
    """A guard that asks for one operation on `group_id`, and refuses with a top-level error."""

    def guard(request: Any, asking: Asking) -> Any:
        if asking.rights.on_group(operation, request.group_id):
            return asking.proceed(request)
        import importlib  # refusals are rare, and so are these classes

        response = getattr(importlib.import_module(f"penstock.protocol.messages.{module}"), name)
        return response(error_code=_NO_GROUP)

    return guard


_may_sync = on_one_group(Operation.READ, "sync_group_response", "SyncGroupResponse")
guard_heartbeat = on_one_group(Operation.READ, "heartbeat_response", "HeartbeatResponse")
guard_leave_group = on_one_group(Operation.READ, "leave_group_response", "LeaveGroupResponse")


def guard_sync_group(request: Any, asking: Asking) -> Any:
    """READ on the group. A request that does not name its protocol is wrong before anything else."""
    if asking.context.version >= PROTOCOL_NAMED_SINCE and None in (
        request.protocol_type,
        request.protocol_name,
    ):
        return asking.proceed(request)
    return _may_sync(request, asking)


def guard_offset_commit(request: Any, asking: Asking) -> Any:
    """READ on the group, and on each topic."""
    from penstock.protocol.messages.offset_commit_response import (
        OffsetCommitResponse,
        OffsetCommitResponsePartition,
        OffsetCommitResponseTopic,
    )

    def refuse(topic: Any, code: int) -> OffsetCommitResponseTopic:
        return OffsetCommitResponseTopic(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=[
                OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code)
                for each in topic.partitions
            ],
        )

    rights = asking.rights
    if not rights.on_group(Operation.READ, request.group_id):
        return OffsetCommitResponse(topics=[refuse(topic, _NO_GROUP) for topic in request.topics])
    by_id = asking.context.version >= TOPIC_IDS_SINCE

    def may_read(topic: Any) -> bool:
        name = asking.topic_name(topic.topic_id) if by_id else topic.name
        return name is None or rights.on_topic(Operation.READ, name)

    allowed, refused = split(request.topics, may_read)
    if not refused:
        return asking.proceed(request)
    more = [refuse(topic, _NO_TOPIC) for topic in refused]
    return asking.partly(request, "topics", allowed, "topics", more)


def guard_offset_fetch(request: Any, asking: Asking) -> Any:
    """DESCRIBE on each group; and on each topic: others are left out of "all", and refused by name."""
    if asking.context.version >= SEVERAL_GROUPS_SINCE:
        return _guard_several_groups(request, asking)
    from penstock.protocol.messages.offset_fetch_response import (
        OffsetFetchResponse,
        OffsetFetchResponsePartition,
        OffsetFetchResponseTopic,
    )

    def refuse(topic: Any, code: int) -> OffsetFetchResponseTopic:
        return OffsetFetchResponseTopic(
            name=topic.name,
            partitions=[
                OffsetFetchResponsePartition(
                    partition_index=index, committed_offset=-1, metadata="", error_code=code
                )
                for index in topic.partition_indexes
            ],
        )

    rights = asking.rights
    if not rights.on_group(Operation.DESCRIBE, request.group_id):
        if asking.context.version >= TOP_LEVEL_ERROR_SINCE:
            return OffsetFetchResponse(error_code=_NO_GROUP)
        return OffsetFetchResponse(topics=[refuse(topic, _NO_GROUP) for topic in request.topics or ()])
    if request.topics is None:
        return asking.then(request, lambda response: _without_hidden(response, rights))
    allowed, refused = split(request.topics, lambda topic: rights.on_topic(Operation.DESCRIBE, topic.name))
    more = [refuse(topic, _NO_TOPIC) for topic in refused]
    return asking.partly(request, "topics", allowed, "topics", more)


def _without_hidden(holder: Any, rights: Any) -> Any:
    holder.topics = [topic for topic in holder.topics if rights.on_topic(Operation.DESCRIBE, topic.name)]
    return holder


def _guard_several_groups(request: Any, asking: Asking) -> Any:
    from penstock.protocol.messages.offset_fetch_response import (
        OffsetFetchResponse,
        OffsetFetchResponseGroup,
        OffsetFetchResponsePartitions,
        OffsetFetchResponseTopics,
    )

    rights = asking.rights
    by_id = asking.context.version >= TOPIC_IDS_SINCE

    def may_see(topic: Any) -> bool:
        name = asking.topic_name(topic.topic_id) if by_id else topic.name
        return name is None or rights.on_topic(Operation.DESCRIBE, name)

    allowed, refused = split(
        request.groups, lambda group: rights.on_group(Operation.DESCRIBE, group.group_id)
    )
    more = [OffsetFetchResponseGroup(group_id=group.group_id, error_code=_NO_GROUP) for group in refused]
    hidden: dict[str, list[Any]] = {}
    everything: set[str] = set()
    for position, group in enumerate(allowed):
        if group.topics is None:
            everything.add(group.group_id)
            continue
        seen, unseen = split(group.topics, may_see)
        if unseen:
            allowed[position] = with_fields(group, topics=seen)
            hidden[group.group_id] = [
                OffsetFetchResponseTopics(
                    name=topic.name,
                    topic_id=topic.topic_id,
                    partitions=[
                        OffsetFetchResponsePartitions(
                            partition_index=index, committed_offset=-1, metadata="", error_code=_NO_TOPIC
                        )
                        for index in topic.partition_indexes
                    ],
                )
                for topic in unseen
            ]
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


def guard_offset_delete(request: Any, asking: Asking) -> Any:
    """DELETE on the group, READ on each topic."""
    from penstock.protocol.messages.offset_delete_response import (
        OffsetDeleteResponse,
        OffsetDeleteResponsePartition,
        OffsetDeleteResponseTopic,
    )

    if not asking.rights.on_group(Operation.DELETE, request.group_id):
        return OffsetDeleteResponse(error_code=_NO_GROUP)
    allowed, refused = split(request.topics, lambda topic: asking.rights.on_topic(Operation.READ, topic.name))
    more = [
        OffsetDeleteResponseTopic(
            name=topic.name,
            partitions=[
                OffsetDeleteResponsePartition(partition_index=each.partition_index, error_code=_NO_TOPIC)
                for each in topic.partitions
            ],
        )
        for topic in refused
    ]
    return asking.partly(request, "topics", allowed, "topics", more)


def guard_describe_groups(request: Any, asking: Asking) -> Any:
    """DESCRIBE on each group."""
    from penstock.protocol.messages.describe_groups_response import DescribedGroup

    rights = asking.rights
    allowed, refused = split(request.groups, lambda name: rights.on_group(Operation.DESCRIBE, name))
    more = [DescribedGroup(group_id=name, error_code=_NO_GROUP) for name in refused]

    def complete(response: Any) -> Any:
        for group in response.groups:
            group.authorized_operations = masked(
                group.authorized_operations, rights, ResourceType.GROUP, group.group_id
            )
        response.groups = [*response.groups, *more]
        return response

    return asking.then(with_fields(request, groups=allowed), complete)


def guard_list_groups(request: Any, asking: Asking) -> Any:
    """DESCRIBE on the cluster, or on each group in the response."""
    rights = asking.rights
    if rights.on_cluster(Operation.DESCRIBE):
        return asking.proceed(request)

    def complete(response: Any) -> Any:
        response.groups = [
            each for each in response.groups if rights.on_group(Operation.DESCRIBE, each.group_id)
        ]
        return response

    return asking.then(request, complete)


def guard_delete_groups(request: Any, asking: Asking) -> Any:
    """DELETE on each group."""
    from penstock.protocol.messages.delete_groups_response import DeletableGroupResult

    allowed, refused = split(
        request.groups_names, lambda name: asking.rights.on_group(Operation.DELETE, name)
    )
    more = [DeletableGroupResult(group_id=name, error_code=_NO_GROUP) for name in refused]
    return asking.partly(request, "groups_names", allowed, "results", more)


def guard_describe_transactions(request: Any, asking: Asking) -> Any:
    """DESCRIBE on each transactional id; topics without DESCRIBE are left out."""
    from penstock.protocol.messages.describe_transactions_response import TransactionState

    rights = asking.rights
    allowed, refused = split(
        request.transactional_ids, lambda each: rights.on_transactional_id(Operation.DESCRIBE, each)
    )
    more = [TransactionState(transactional_id=each, error_code=_NO_TRANSACTION) for each in refused]

    def complete(response: Any) -> Any:
        for state in response.transaction_states:
            state.topics = [each for each in state.topics if rights.on_topic(Operation.DESCRIBE, each.topic)]
        response.transaction_states = [*response.transaction_states, *more]
        return response

    return asking.then(with_fields(request, transactional_ids=allowed), complete)


def guard_list_transactions(request: Any, asking: Asking) -> Any:
    """DESCRIBE on each transactional id in the response."""

    def complete(response: Any) -> Any:
        response.transaction_states = [
            each
            for each in response.transaction_states
            if asking.rights.on_transactional_id(Operation.DESCRIBE, each.transactional_id)
        ]
        return response

    return asking.then(request, complete)
