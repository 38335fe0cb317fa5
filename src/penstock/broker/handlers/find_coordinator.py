"""FindCoordinator (10).

v1 key types (0 group, 1 transaction, 2 share group from v6 on) and messages; v4 several keys. The
coordinator of a group or a transactional id is the leader of the partition that its state is kept in.
Share groups are not offered, so the answer for these is COORDINATOR_NOT_AVAILABLE, with the reason.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol

from penstock.broker.context import Context, Parts
from penstock.broker.partitions.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from penstock.common.java_hash import partition_of
from penstock.errors import KafkaError, StorageError
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from penstock.protocol.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse

if TYPE_CHECKING:
    from penstock.broker.groups.service import GroupService
    from penstock.broker.metadata.cluster import Cluster
    from penstock.broker.metadata.cluster_view import ClusterView
    from penstock.broker.transactions.service import TransactionService
    from penstock.common.failures import LimitedLog

SEVERAL_KEYS_SINCE = 4
SHARE_GROUPS_SINCE = 6
GROUP_KEY, TRANSACTION_KEY, SHARE_KEY = 0, 1, 2

_NOT_OFFERED = {2: "share groups"}

_NO_ERROR = "NONE"
"""Apache Kafka's error message below version 4 where there is no error."""


class Needs(Parts, Protocol):
    """The parts of a broker that this API works on."""

    limited_log: LimitedLog

    cluster: Cluster
    view: ClusterView

    @property
    def groups(self) -> GroupService: ...
    @property
    def transactions(self) -> TransactionService: ...


def find_coordinator(request: FindCoordinatorRequest, context: Context[Needs]) -> FindCoordinatorResponse:
    """Name the coordinator of each key. The topic for their state is made on the way."""
    code, message = _judge(request.key_type, context)
    living = {each.id: each for each in context.node.view.living(context.session)}

    def find(key: str) -> Coordinator:
        found = Coordinator(key=key, node_id=-1, host="", port=-1, error_code=code, error_message=message)
        if not code:
            leader = living.get(_leader(key, request.key_type, context))
            if leader is None:
                found.error_code = ErrorCode.COORDINATOR_NOT_AVAILABLE
                found.error_message = "The partition of the coordinator has no leader."
            else:
                found.node_id, found.host, found.port = leader.id, leader.host, leader.port
        return found

    if context.version < SEVERAL_KEYS_SINCE:
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


def _leader(key: str, key_type: int, context: Context[Needs]) -> int:
    """Return the broker that leads the partition of a key; -1 where none does."""
    name = OFFSETS_TOPIC if key_type == GROUP_KEY else TRANSACTIONS_TOPIC
    topic = context.node.cluster.topics.get(name)
    if topic is None or not topic.partitions:
        return -1
    return topic.partitions[partition_of(key, len(topic.partitions))].leader


def _judge(key_type: int, context: Context[Needs]) -> tuple[ErrorCode, str]:
    """Whether keys of this kind have a coordinator: an error and its message, NONE and nothing if so."""
    if key_type in (GROUP_KEY, TRANSACTION_KEY):
        owner = context.node.groups if key_type == GROUP_KEY else context.node.transactions
        try:
            owner.create_topic(context.now_ms)
        except (KafkaError, StorageError) as error:
            # A disk that refuses, or too few brokers: another time there may be a coordinator.
            context.node.limited_log.write(logging.ERROR, "coordinators", "no topic for them: %s", error)
            return ErrorCode.COORDINATOR_NOT_AVAILABLE, str(error)
        return ErrorCode.NONE, ""
    kind = _NOT_OFFERED.get(key_type)
    if kind is None or (key_type == SHARE_KEY and context.version < SHARE_GROUPS_SINCE):
        return ErrorCode.INVALID_REQUEST, f"coordinator key type {key_type} is unknown"
    return ErrorCode.COORDINATOR_NOT_AVAILABLE, f"this broker offers no {kind}"
