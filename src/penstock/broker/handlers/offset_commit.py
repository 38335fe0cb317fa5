"""OffsetCommit (8): store the offsets up to which a group has read.

v1 adds generation and member, and a commit time, which is not used; v2-v4 have a retention time; v6 leader
epochs; v7 instance ids; v9 GROUP_ID_NOT_FOUND (69), and the epochs of members of consumer groups; v10 topics
by id. In Apache Kafka, v0 stores offsets in ZooKeeper; in Penstock, all versions store them in
`__consumer_offsets`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.broker.config.definition import LONG_MAX
from penstock.broker.context import Context
from penstock.broker.groups.offsets import NEVER_EXPIRES, CommittedOffset, PartitionKey
from penstock.broker.metadata.replica_manager import Topic
from penstock.broker.requests.string_lengths import STRING_BYTES_MAX
from penstock.common.logs import logger_named
from penstock.errors import KafkaError, StorageError
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
)
from penstock.protocol.messages.offset_commit_response import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from penstock.protocol.since import OFFSET_COMMIT_TOPIC_IDS_SINCE

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode
    from penstock.protocol.messages.txn_offset_commit_request import TxnOffsetCommitRequestPartition

logger = logger_named("penstock.broker")

MEMBER_EPOCHS_SINCE = 9


def offset_commit(request: OffsetCommitRequest, context: Context[ServingNode]) -> OffsetCommitResponse:
    """Store offsets of a group. Only current members may commit, or any client if the group is empty."""
    service = context.node.groups
    response = OffsetCommitResponse()
    commits: list[tuple[PartitionKey, CommittedOffset]] = []
    accepted: list[OffsetCommitResponsePartition] = []
    by_id = context.version >= OFFSET_COMMIT_TOPIC_IDS_SINCE
    for topic in request.topics:
        name, missing = find_topic(topic.name, topic.topic_id, by_id, context)
        answer = OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id)
        response.topics.append(answer)
        for partition in topic.partitions:
            error = missing or offset_error(name, partition, service.metadata_bytes_max)
            outcome = OffsetCommitResponsePartition(
                partition_index=partition.partition_index, error_code=error
            )
            answer.partitions.append(outcome)
            if not error:
                assert name is not None
                accepted.append(outcome)
                commits.append(_committed(name.name, partition, request, context.now_ms))
    error = _commit(request, commits, context)
    if error:
        for outcome in accepted:
            outcome.error_code = error
    return response


def find_topic(
    name: str, topic_id: bytes, by_id: bool, context: Context[ServingNode]
) -> tuple[Topic | None, ErrorCode]:
    """Return (topic, NONE) for a topic's name or id, or (None, error) if the topic does not exist."""
    cluster = context.node.cluster
    topic = cluster.topics_by_id.get(topic_id) if by_id else cluster.topics.get(name)
    if topic is not None:
        return topic, ErrorCode.NONE
    return None, ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def offset_error(
    topic: Topic | None,
    partition: OffsetCommitRequestPartition | TxnOffsetCommitRequestPartition,
    metadata_bytes_max: int,
) -> ErrorCode:
    """Return the error for which an offset of this partition cannot be committed, or NONE."""
    if topic is None or not 0 <= partition.partition_index < len(topic.partitions):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    metadata = partition.committed_metadata or ""
    if len(metadata) > metadata_bytes_max or len(metadata.encode()) > STRING_BYTES_MAX:
        return ErrorCode.OFFSET_METADATA_TOO_LARGE
    return ErrorCode.NONE


def storing_error(failure: KafkaError) -> ErrorCode:
    """Return the error code for the response if writing a commit to the log has failed."""
    if failure.code == ErrorCode.MESSAGE_TOO_LARGE:
        return ErrorCode.INVALID_COMMIT_OFFSET_SIZE
    return ErrorCode(failure.code)


def _committed(
    topic: str, partition: OffsetCommitRequestPartition, request: OffsetCommitRequest, now_ms: int
) -> tuple[PartitionKey, CommittedOffset]:
    keep_ms = request.retention_time_ms
    committed = CommittedOffset(
        partition.committed_offset,
        partition.committed_leader_epoch,
        partition.committed_metadata or "",
        now_ms,
        # A time that a client chose may lie beyond what 64 bits hold.
        NEVER_EXPIRES if keep_ms < 0 else min(now_ms + keep_ms, LONG_MAX),
    )
    return (topic, partition.partition_index), committed


def _commit(
    request: OffsetCommitRequest,
    commits: Sequence[tuple[PartitionKey, CommittedOffset]],
    context: Context[ServingNode],
) -> ErrorCode:
    """Check the member that commits, and store its offsets; return one error for all of them, or NONE."""
    service = context.node.groups
    group_id, generation = request.group_id, request.generation_id_or_member_epoch
    if len(group_id.encode()) > STRING_BYTES_MAX:
        return ErrorCode.INVALID_GROUP_ID
    try:
        service.open(group_id)
        service.settle(context.now)
        error = service.check_commit(
            group_id,
            request.member_id,
            request.group_instance_id,
            generation,
            [partition for partition, _ in commits],
            context.now,
            has_epochs=context.version >= MEMBER_EPOCHS_SINCE,
        )
        if not error and not service.has_room_for_offsets(group_id, commits):
            error = ErrorCode.INVALID_COMMIT_OFFSET_SIZE
        if error:
            return error
        if commits:
            service.commit(group_id, commits, context.now_ms)
    except KafkaError as failure:
        return storing_error(failure)
    except StorageError as failure:
        logger.error("%s", failure)
        return ErrorCode.NOT_COORDINATOR
    finally:
        service.settle(context.now)
    return ErrorCode.NONE
