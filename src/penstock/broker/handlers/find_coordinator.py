"""FindCoordinator (10): the broker that coordinates a group, a transactional id or a share partition.

v1 adds key types (0 group, 1 transaction, 2 share partition from v6 on) and messages; v4 several keys. The
coordinator is the leader of the partition that stores the state of the group, transactional id or share
partition. The key of a share partition is ``group:topicId:partition``.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from penstock.broker.context import Context
from penstock.broker.partitions.internal_topics import (
    OFFSETS_TOPIC,
    SHARE_STATE_TOPIC,
    TRANSACTIONS_TOPIC,
)
from penstock.common.java_hash import partition_of
from penstock.errors import KafkaError, StorageError
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.field_values import GROUP_KEY, SHARE_KEY, TRANSACTION_KEY
from penstock.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from penstock.protocol.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse
from penstock.protocol.since import FIND_COORDINATOR_KEYS_SINCE

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode

SHARE_GROUPS_SINCE = 6

_TOPICS = {GROUP_KEY: OFFSETS_TOPIC, TRANSACTION_KEY: TRANSACTIONS_TOPIC, SHARE_KEY: SHARE_STATE_TOPIC}
"""A dict from key type to the internal topic that stores the state for keys of this type."""

_NO_ERROR = "NONE"
"""The error message, "NONE", in a successful response below version 4, as in Apache Kafka."""


def find_coordinator(
    request: FindCoordinatorRequest, context: Context[ServingNode]
) -> FindCoordinatorResponse:
    """Return the coordinator of each key. The topic that stores their state is created if necessary."""
    code, message = _judge(request.key_type, context)
    living = {each.id: each for each in context.node.view.living(context.session)}

    def find(key: str) -> Coordinator:
        found = Coordinator(key=key, node_id=-1, host="", port=-1, error_code=code, error_message=message)
        if not code and request.key_type == SHARE_KEY and not _is_share_partition(key):
            found.error_code = ErrorCode.INVALID_REQUEST
            found.error_message = "The key of a share partition is group:topicId:partition."
        elif not code:
            leader = living.get(_leader(key, request.key_type, context))
            if leader is None:
                found.error_code = ErrorCode.COORDINATOR_NOT_AVAILABLE
                found.error_message = "The partition of the coordinator has no leader."
            else:
                found.node_id, found.host, found.port = leader.id, leader.host, leader.port
        return found

    if context.version < FIND_COORDINATOR_KEYS_SINCE:
        found = find(request.key)
        return FindCoordinatorResponse(
            error_code=found.error_code,
            error_message=found.error_message or _NO_ERROR,
            node_id=found.node_id,
            host=found.host,
            port=found.port,
        )
    return FindCoordinatorResponse(
        coordinators=[find(key) for key in dict.fromkeys(request.coordinator_keys)]
    )


def _leader(key: str, key_type: int, context: Context[ServingNode]) -> int:
    """Return the id of the broker that leads the partition with a key's state, or -1 if it has no leader."""
    topic = context.node.cluster.topics.get(_TOPICS[key_type])
    if topic is None or not topic.partitions:
        return -1
    return topic.partitions[partition_of(key, len(topic.partitions))].leader


def _judge(key_type: int, context: Context[ServingNode]) -> tuple[ErrorCode, str]:
    """Check a key; return (NONE, "") if its type has a coordinator, otherwise an error and a message."""
    node = context.node
    if key_type in _TOPICS and (key_type != SHARE_KEY or context.version >= SHARE_GROUPS_SINCE):
        try:
            owner = (
                node.groups
                if key_type == GROUP_KEY
                else node.transactions
                if key_type == TRANSACTION_KEY
                else node.share_states
            )
            owner.create_topic(context.now_ms)
        except (KafkaError, StorageError) as error:
            # A disk that refuses, or too few brokers: another time there may be a coordinator.
            context.node.limited_log.write(logging.ERROR, "coordinators", "no topic for them: %s", error)
            return ErrorCode.COORDINATOR_NOT_AVAILABLE, str(error)
        return ErrorCode.NONE, ""
    return ErrorCode.INVALID_REQUEST, f"coordinator key type {key_type} is unknown"


def _is_share_partition(key: str) -> bool:
    from penstock.broker.groups.share_state.keys import parse_key  # only brokers ask for these

    try:
        parse_key(key)
    except ValueError:
        return False
    return True
