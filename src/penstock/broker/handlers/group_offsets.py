"""OffsetCommit (8), OffsetFetch (9) and OffsetDelete (47): how far a group has read.

OffsetCommit, versions 0-10: v1 generation and member, and a time of the commit, which is not used; v2-v4 how
long to keep the offset; v6 leader epochs; v7 instance ids; v10 topics by id. Versions 0 of this and of
OffsetFetch were kept in ZooKeeper once; here they are the same offsets.

OffsetFetch, versions 0-10: v0 answers error 3 where there is no offset, v1 offset -1; v2 null means all
topics, and there is an error for the whole; v5 leader epochs; v7 `require_stable`; v8 several groups; v9
member and epoch, which mean nothing to groups of this kind; v10 topics by id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from penstock.broker.config.definition import LONG_MAX
from penstock.broker.context import Context, Parts
from penstock.broker.groups.offsets import NEVER_EXPIRES, Committed, PartitionKey
from penstock.broker.metadata.replica_manager import Topic
from penstock.broker.requests.repetition import merged
from penstock.broker.requests.string_lengths import STRING_BYTES_MAX
from penstock.common.logs import logger_named
from penstock.errors import KafkaError, StorageError
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
)
from penstock.protocol.messages.offset_commit_response import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from penstock.protocol.messages.offset_delete_request import OffsetDeleteRequest
from penstock.protocol.messages.offset_delete_response import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from penstock.protocol.messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestGroup
from penstock.protocol.messages.offset_fetch_response import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from penstock.protocol.uuid import ZERO_UUID

if TYPE_CHECKING:
    from penstock.broker.groups.service import GroupService
    from penstock.broker.metadata.cluster import Cluster

logger = logger_named("penstock.broker")

TOPIC_IDS_SINCE = 10
GROUP_ID_NOT_FOUND_SINCE = 9
SEVERAL_GROUPS_SINCE = 8
NO_OFFSET_SINCE = 1

OFFSET_BYTES = 20
"""What an offset takes in an answer beside its metadata."""

NO_OFFSET = Committed(-1, -1, "", -1)


# --- OffsetCommit ----------------------------------------------------------------------------------------


class Needs(Parts, Protocol):
    """The parts of a broker that this API works on."""

    cluster: Cluster

    @property
    def groups(self) -> GroupService: ...


def offset_commit(request: OffsetCommitRequest, context: Context[Needs]) -> OffsetCommitResponse:
    """Store offsets of a group, for members of the generation at work or, in an empty group, for anybody."""
    service = context.node.groups
    response = OffsetCommitResponse()
    commits: list[tuple[PartitionKey, Committed]] = []
    accepted: list[OffsetCommitResponsePartition] = []
    by_id = context.version >= TOPIC_IDS_SINCE
    for topic in request.topics:
        name, missing = _find(topic.name, topic.topic_id, by_id, context)
        answer = OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id)
        response.topics.append(answer)
        for partition in topic.partitions:
            error = missing or _check(name, partition, service.metadata_bytes_max)
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


def _find(name: str, topic_id: bytes, by_id: bool, context: Context[Needs]) -> tuple[Topic | None, ErrorCode]:
    """The topic that is meant, or the error for each of its partitions."""
    cluster = context.node.cluster
    topic = cluster.topics_by_id.get(topic_id) if by_id else cluster.topics.get(name)
    if topic is not None:
        return topic, ErrorCode.NONE
    return None, ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _check(topic: Topic | None, partition: OffsetCommitRequestPartition, bytes_max: int) -> ErrorCode:
    if topic is None or not 0 <= partition.partition_index < len(topic.partitions):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    metadata = partition.committed_metadata or ""
    if len(metadata) > bytes_max or len(metadata.encode()) > STRING_BYTES_MAX:
        return ErrorCode.OFFSET_METADATA_TOO_LARGE
    return ErrorCode.NONE


def _committed(
    topic: str, partition: OffsetCommitRequestPartition, request: OffsetCommitRequest, now_ms: int
) -> tuple[PartitionKey, Committed]:
    keep_ms = request.retention_time_ms
    committed = Committed(
        partition.committed_offset,
        partition.committed_leader_epoch,
        partition.committed_metadata or "",
        now_ms,
        # A time that a client chose may lie beyond what 64 bits hold.
        NEVER_EXPIRES if keep_ms < 0 else min(now_ms + keep_ms, LONG_MAX),
    )
    return (topic, partition.partition_index), committed


def _commit(
    request: OffsetCommitRequest, commits: Sequence[tuple[PartitionKey, Committed]], context: Context[Needs]
) -> ErrorCode:
    """Check who commits, and store what may be stored; return the error for all of it."""
    service = context.node.groups
    group_id, generation = request.group_id, request.generation_id_or_member_epoch
    if len(group_id.encode()) > STRING_BYTES_MAX:
        return ErrorCode.INVALID_GROUP_ID
    try:
        group = service.open(group_id)
        service.coordinator.advance(context.now)
        if group is None:
            if generation >= 0:
                is_new = context.version >= GROUP_ID_NOT_FOUND_SINCE
                return ErrorCode.GROUP_ID_NOT_FOUND if is_new else ErrorCode.ILLEGAL_GENERATION
        else:
            error = group.check_commit(request.member_id, request.group_instance_id, generation, context.now)
            if error:
                return error
        if commits and not service.has_room_for_offsets(group_id, commits):
            return ErrorCode.INVALID_COMMIT_OFFSET_SIZE
        if commits:
            service.commit(group_id, commits, context.now_ms)
            if group is None:
                service.coordinator.create(group_id)
    except KafkaError as failure:
        too_large = failure.code == ErrorCode.MESSAGE_TOO_LARGE
        return ErrorCode.INVALID_COMMIT_OFFSET_SIZE if too_large else ErrorCode(failure.code)
    except StorageError as failure:
        logger.error("%s", failure)
        return ErrorCode.NOT_COORDINATOR
    finally:
        service.settle(context.now)
    return ErrorCode.NONE


# --- OffsetFetch -----------------------------------------------------------------------------------------


def offset_fetch(request: OffsetFetchRequest, context: Context[Needs]) -> OffsetFetchResponse:
    """Tell what groups have committed. Nothing is ever pending, so `require_stable` changes nothing."""
    context.begin_claims()
    if context.version >= SEVERAL_GROUPS_SINCE:
        return OffsetFetchResponse(groups=[_fetch_group(group, context) for group in _groups_once(request)])
    try:
        context.node.groups.open(request.group_id)
    except KafkaError as error:
        return OffsetFetchResponse(error_code=error.code)
    offsets = context.node.groups.offsets.of_group(request.group_id)
    if request.topics is None:
        asked: Iterable[tuple[str, Iterable[int]]] = _by_topic(offsets)
    else:
        topics = merged(request.topics, lambda topic: topic.name, "partition_indexes")
        asked = [(topic.name, topic.partition_indexes) for topic in topics]
    missing = ErrorCode.NONE if context.version >= NO_OFFSET_SINCE else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    response = OffsetFetchResponse()
    for name, indexes in asked:
        topic = OffsetFetchResponseTopic(name=name)
        response.topics.append(topic)
        for index in indexes:
            found = offsets.get((name, index))
            committed = found or NO_OFFSET
            context.claim(OFFSET_BYTES + len(committed.metadata))
            topic.partitions.append(
                OffsetFetchResponsePartition(
                    partition_index=index,
                    committed_offset=committed.offset,
                    committed_leader_epoch=committed.leader_epoch,
                    metadata=committed.metadata,
                    error_code=missing if found is None else ErrorCode.NONE,
                )
            )
    return response


def _groups_once(request: OffsetFetchRequest) -> list[OffsetFetchRequestGroup]:
    """The groups of a request, each once, with all topics that are asked for wherever it is named."""
    found: dict[str, OffsetFetchRequestGroup] = {}
    for group in request.groups:
        first = found.setdefault(group.group_id, group)
        if first is group:
            continue
        if first.topics is None or group.topics is None:
            first.topics = None
        else:
            first.topics += group.topics
    return list(found.values())


def _by_topic(offsets: Iterable[PartitionKey]) -> list[tuple[str, list[int]]]:
    topics: dict[str, list[int]] = {}
    for name, index in offsets:
        topics.setdefault(name, []).append(index)
    return list(topics.items())


def _fetch_group(asked: OffsetFetchRequestGroup, context: Context[Needs]) -> OffsetFetchResponseGroup:
    response = OffsetFetchResponseGroup(group_id=asked.group_id)
    try:
        context.node.groups.open(asked.group_id)
    except KafkaError as error:
        response.error_code = error.code
        return response
    offsets = context.node.groups.offsets.of_group(asked.group_id)
    by_id = context.version >= TOPIC_IDS_SINCE
    if asked.topics is None:
        topics = context.node.cluster.topics
        for name, indexes in _by_topic(offsets):
            topic_id = topics[name].id if name in topics else ZERO_UUID
            if not by_id or name in topics:
                response.topics.append(_fetched(name, topic_id, indexes, offsets.get, context))
        return response
    topics_once = merged(asked.topics, lambda topic: (topic.name, topic.topic_id), "partition_indexes")
    for topic in topics_once:
        found, missing = _find(topic.name, topic.topic_id, by_id, context)
        name = found.name if by_id and found is not None else topic.name
        answer = _fetched(name, topic.topic_id, topic.partition_indexes, offsets.get, context)
        if by_id and missing:
            for partition in answer.partitions:
                partition.error_code = missing
        response.topics.append(answer)
    return response


def _fetched(
    name: str,
    topic_id: bytes,
    indexes: Iterable[int],
    find: Callable[[PartitionKey], Committed | None],
    context: Context[Needs],
) -> OffsetFetchResponseTopics:
    topic = OffsetFetchResponseTopics(name=name, topic_id=topic_id)
    for index in indexes:
        committed = find((name, index)) or NO_OFFSET
        context.claim(OFFSET_BYTES + len(committed.metadata))
        topic.partitions.append(
            OffsetFetchResponsePartitions(
                partition_index=index,
                committed_offset=committed.offset,
                committed_leader_epoch=committed.leader_epoch,
                metadata=committed.metadata,
            )
        )
    return topic


# --- OffsetDelete ----------------------------------------------------------------------------------------


def offset_delete(request: OffsetDeleteRequest, context: Context[Needs]) -> OffsetDeleteResponse:
    """Remove offsets of topics that nobody in the group wants."""
    service = context.node.groups
    try:
        kept = _subscribed(request.group_id, context)
        response = OffsetDeleteResponse()
        doomed: list[PartitionKey] = []
        for topic in request.topics:
            answer = OffsetDeleteResponseTopic(name=topic.name)
            response.topics.append(answer)
            for partition in topic.partitions:
                place = topic.name, partition.partition_index
                error = _check_delete(place, kept, context)
                if not error:
                    doomed.append(place)
                answer.partitions.append(
                    OffsetDeleteResponsePartition(partition_index=partition.partition_index, error_code=error)
                )
        service.remove(request.group_id, doomed, context.now_ms)
    except KafkaError as failure:
        return OffsetDeleteResponse(error_code=failure.code)
    except StorageError as failure:
        logger.error("%s", failure)
        return OffsetDeleteResponse(error_code=ErrorCode.NOT_COORDINATOR)
    return response


def _subscribed(group_id: str, context: Context[Needs]) -> set[str] | None:
    """The topics that members of a group want; None where nobody knows.

    Raises:
        KafkaError: GROUP_ID_NOT_FOUND (69), NON_EMPTY_GROUP (68) for members that are no consumers,
            INVALID_GROUP_ID (24), or the log cannot be read.
    """
    if not group_id:
        raise error_for(ErrorCode.INVALID_GROUP_ID, "a group needs an id")
    group = context.node.groups.open(group_id)
    if group is None:
        raise error_for(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {group_id}")
    if group.can_be_deleted:
        return set()
    if not group.is_of_consumers:
        raise error_for(ErrorCode.NON_EMPTY_GROUP, f"group {group_id} has members")
    return group.subscribed_topics()


def _check_delete(place: PartitionKey, kept: set[str] | None, context: Context[Needs]) -> ErrorCode:
    topic = context.node.cluster.topics.get(place[0])
    if topic is None or not 0 <= place[1] < len(topic.partitions):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if kept is None or place[0] in kept:
        return ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    return ErrorCode.NONE
