"""TxnOffsetCommit (28): offsets of a group that take effect when a transaction commits.

v2 adds leader epochs; v3 generation, member and instance (KIP-447), flexible; v4 adds TRANSACTION_ABORTABLE;
v5 adds the partition of the group to the transaction (KIP-890); v6 topics by id, and the errors
GROUP_ID_NOT_FOUND (69) and STALE_MEMBER_EPOCH (113) (KIP-1319).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.broker.context import Context
from penstock.broker.groups.offsets import CommittedOffset, PartitionKey
from penstock.broker.handlers.offset_commit import find_topic, offset_error, storing_error
from penstock.broker.partitions.producers.transactional_appends import join
from penstock.broker.requests.string_lengths import STRING_BYTES_MAX
from penstock.common.logs import logger_named
from penstock.errors import KafkaError, StorageError
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
)
from penstock.protocol.messages.txn_offset_commit_response import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from penstock.protocol.since import TXN_OFFSET_COMMIT_TOPIC_IDS_SINCE

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode

logger = logger_named("penstock.broker")


def txn_offset_commit(
    request: TxnOffsetCommitRequest, context: Context[ServingNode]
) -> TxnOffsetCommitResponse:
    """Store a group's offsets as part of a transaction; each partition has its own result."""
    service = context.node.groups
    response = TxnOffsetCommitResponse()
    commits: list[tuple[PartitionKey, CommittedOffset]] = []
    accepted: list[TxnOffsetCommitResponsePartition] = []
    by_id = context.version >= TXN_OFFSET_COMMIT_TOPIC_IDS_SINCE
    for topic in request.topics:
        found, missing = find_topic(topic.name, topic.topic_id, by_id, context)
        answer = TxnOffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id)
        response.topics.append(answer)
        for partition in topic.partitions:
            error = missing or offset_error(found, partition, service.metadata_bytes_max)
            outcome = TxnOffsetCommitResponsePartition(
                partition_index=partition.partition_index, error_code=error
            )
            answer.partitions.append(outcome)
            if not error:
                assert found is not None
                accepted.append(outcome)
                committed = CommittedOffset(
                    partition.committed_offset,
                    partition.committed_leader_epoch,
                    partition.committed_metadata or "",
                    context.now_ms,
                )
                commits.append(((found.name, partition.partition_index), committed))
    if commits:
        error = _commit(request, commits, context)
        for outcome in accepted:
            outcome.error_code = error
    return response


def _commit(
    request: TxnOffsetCommitRequest,
    commits: list[tuple[PartitionKey, CommittedOffset]],
    context: Context[ServingNode],
) -> ErrorCode:
    """Add the group's partition to the transaction, check the member, and store the offsets.

    Returns the error for all offsets, or NONE.
    """
    service, group_id = context.node.groups, request.group_id
    if not group_id or len(group_id.encode()) > STRING_BYTES_MAX:
        return ErrorCode.INVALID_GROUP_ID
    transactions = context.node.transactions
    joining = transactions.joining(request.transactional_id, context.version, of_offsets=True)
    try:
        service.create_topic(context.now_ms)
        service.open(group_id)
        partition = service.topic.partition(group_id)
        # Before the group is asked, as in Apache Kafka: a commit that is refused leaves the partition added.
        permission = join(partition, request.producer_id, request.producer_epoch, 0, joining)
        service.settle(context.now)
        error = service.check_commit(
            group_id,
            request.member_id,
            request.group_instance_id,
            request.generation_id_or_member_epoch,
            [partition for partition, _ in commits],
            now=None,
            has_epochs=context.version >= TXN_OFFSET_COMMIT_TOPIC_IDS_SINCE,
        )
        if not error and not service.has_room_for_offsets(group_id, commits):
            error = ErrorCode.INVALID_COMMIT_OFFSET_SIZE
        if error:
            return error
        service.commit_in_transaction(
            group_id, (request.producer_id, request.producer_epoch), commits, context.now_ms, permission
        )
    except KafkaError as failure:
        return storing_error(failure)
    except StorageError as failure:
        logger.error("%s", failure)
        return ErrorCode.NOT_COORDINATOR
    finally:
        service.settle(context.now)
    return ErrorCode.NONE
