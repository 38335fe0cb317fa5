"""Guards of the APIs of transactional producers, and functions that hide parts of their responses."""

from __future__ import annotations

from typing import Any

from penstock.broker.security.guards.guard import Asking, split
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.since import ADD_PARTITIONS_TO_TXN_SEVERAL_SINCE
from penstock.security.acls import Operation, ResourceType

_NO_CLUSTER = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
_NO_TOPIC = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_NO_TRANSACTION = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def guard_init_producer_id(request: Any, asking: Asking) -> Any:
    """Require WRITE on the transactional id, or, without id, IDEMPOTENT_WRITE or any WRITE (KIP-679)."""
    rights = asking.rights
    if request.transactional_id is not None:
        needed = [Operation.WRITE]
        if request.enable2_pc:
            needed.append(Operation.TWO_PHASE_COMMIT)
        if not all(rights.on_transactional_id(each, request.transactional_id) for each in needed):
            return asking.refuse(request, _NO_TRANSACTION)
    elif not (
        rights.on_cluster(Operation.IDEMPOTENT_WRITE) or rights.anywhere(Operation.WRITE, ResourceType.TOPIC)
    ):
        return asking.refuse(request, _NO_CLUSTER)
    return asking.proceed(request)


def guard_add_partitions_to_txn(request: Any, asking: Asking) -> Any:
    """Require WRITE on the transactional id and each topic; in v4 and later, for brokers, CLUSTER_ACTION.

    If one topic is refused, no topic is added.
    """
    rights = asking.rights
    if asking.context.version >= ADD_PARTITIONS_TO_TXN_SEVERAL_SINCE:
        if rights.on_cluster(Operation.CLUSTER_ACTION):
            return asking.proceed(request)
        return asking.refuse(request, _NO_CLUSTER)
    if not rights.on_transactional_id(Operation.WRITE, request.v3_and_below_transactional_id):
        return asking.refuse(request, _NO_TRANSACTION)
    _, refused = split(
        request.v3_and_below_topics, lambda topic: rights.on_topic(Operation.WRITE, topic.name)
    )
    if not refused:
        return asking.proceed(request)
    response = asking.refuse(request, _NO_TOPIC)
    denied = {topic.name for topic in refused}
    known = asking.context.node.cluster.topics
    for topic in response.results_by_topic_v3_and_below:
        count = len(known[topic.name].partitions) if topic.name in known else 0
        for each in topic.results_by_partition if topic.name not in denied else ():
            is_known = 0 <= each.partition_index < count
            each.partition_error_code = (
                ErrorCode.OPERATION_NOT_ATTEMPTED if is_known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            )
    return response


def hide_topics_of_transactions(response: Any, asking: Asking) -> None:
    """Remove topics that the principal may not describe from DescribeTransactions."""
    for state in response.transaction_states:
        state.topics = [
            each for each in state.topics if asking.rights.on_topic(Operation.DESCRIBE, each.topic)
        ]


def hide_transactions(response: Any, asking: Asking) -> None:
    """Remove transactional ids that the principal may not describe from ListTransactions."""
    response.transaction_states = [
        each
        for each in response.transaction_states
        if asking.rights.on_transactional_id(Operation.DESCRIBE, each.transactional_id)
    ]
