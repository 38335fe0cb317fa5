"""OffsetFetch (9): the committed offsets of groups.

For a partition without a committed offset, v0 has the error UNKNOWN_TOPIC_OR_PARTITION (3), and v1 the offset
-1; since v2 a null list means all topics, and the response has a top-level error; v5 adds leader epochs; v7
`require_stable`; v8 several groups; v9 member and epoch, for consumer groups (KIP-848); v10 topics by id. In
Apache Kafka, v0 reads offsets from ZooKeeper; in Penstock, all versions read the same offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING

from penstock.broker.context import Context
from penstock.broker.groups.offsets import CommittedOffset, PartitionKey
from penstock.broker.handlers.offset_commit import find_topic
from penstock.broker.partitions.internal_topics import OFFSETS_TOPIC
from penstock.broker.requests.repetition import merged
from penstock.errors import KafkaError
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestGroup
from penstock.protocol.messages.offset_fetch_response import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from penstock.protocol.since import OFFSET_FETCH_GROUPS_SINCE, OFFSET_FETCH_TOPIC_IDS_SINCE
from penstock.protocol.uuid import ZERO_UUID

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode

ERROR_FOR_ALL_SINCE = 2

NO_OFFSET_SINCE = 1

OFFSET_BYTES = 20
"""The approximate size in bytes of an offset in a response, without its metadata."""

_UNSTABLE = ErrorCode.UNSTABLE_OFFSET_COMMIT

NO_OFFSET = CommittedOffset(-1, -1, "", -1)


def offset_fetch(request: OffsetFetchRequest, context: Context[ServingNode]) -> OffsetFetchResponse:
    """Return the committed offsets of groups.

    With `require_stable`, a partition whose offset a pending transaction may change has
    UNSTABLE_OFFSET_COMMIT (88) instead.
    """
    context.begin_claims()
    if context.version >= OFFSET_FETCH_GROUPS_SINCE:
        groups = _groups_once(request)
        return OffsetFetchResponse(
            groups=[_fetch_group(group, request.require_stable, context) for group in groups]
        )
    try:
        _open(request.group_id, context)
    except KafkaError as error:
        return _refuse(request, error.code, context)
    offsets = context.node.groups.offsets.of_group(request.group_id)
    if request.topics is None:
        asked: Iterable[tuple[str, Iterable[int]]] = _by_topic(offsets)
    else:
        topics = merged(request.topics, lambda topic: topic.name, "partition_indexes")
        asked = [(topic.name, topic.partition_indexes) for topic in topics]
    pending = context.node.groups.store.pending.is_pending
    missing = ErrorCode.NONE if context.version >= NO_OFFSET_SINCE else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    response = OffsetFetchResponse()
    for name, indexes in asked:
        topic = OffsetFetchResponseTopic(name=name)
        response.topics.append(topic)
        for index in indexes:
            found = offsets.get((name, index))
            unstable = request.require_stable and pending(request.group_id, (name, index))
            committed = NO_OFFSET if unstable or found is None else found
            context.claim(OFFSET_BYTES + len(committed.metadata))
            topic.partitions.append(
                OffsetFetchResponsePartition(
                    partition_index=index,
                    committed_offset=committed.offset,
                    committed_leader_epoch=committed.leader_epoch,
                    metadata=committed.metadata,
                    error_code=_UNSTABLE if unstable else missing if found is None else ErrorCode.NONE,
                )
            )
    return response


def _open(group_id: str, context: Context[ServingNode]) -> None:
    """Read the stored offsets of a group.

    Raises:
        KafkaError: NOT_COORDINATOR (16): the offsets cannot be read, or `__consumer_offsets` does not exist
        yet, so that no broker coordinates the group.
    """
    groups = context.node.groups
    if not groups.topic.exists and context.version >= NO_OFFSET_SINCE:  # before, any broker asked ZooKeeper
        raise error_for(ErrorCode.NOT_COORDINATOR, f"there is no {OFFSETS_TOPIC} yet")
    groups.open(group_id)


def _refuse(request: OffsetFetchRequest, code: int, context: Context[ServingNode]) -> OffsetFetchResponse:
    """Return a response with one error for all groups; old versions have it in each partition."""
    response = OffsetFetchResponse(error_code=code)
    if context.version < ERROR_FOR_ALL_SINCE:
        for topic in merged(request.topics or (), lambda topic: topic.name, "partition_indexes"):
            refused = [
                OffsetFetchResponsePartition(
                    partition_index=index,
                    committed_offset=-1,
                    committed_leader_epoch=-1,
                    metadata="",
                    error_code=code,
                )
                for index in topic.partition_indexes
            ]
            response.topics.append(OffsetFetchResponseTopic(name=topic.name, partitions=refused))
    return response


def _groups_once(request: OffsetFetchRequest) -> list[OffsetFetchRequestGroup]:
    """Return each group of a request once, with the topics of all its entries in the request."""
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


def _fetch_group(
    asked: OffsetFetchRequestGroup, require_stable: bool, context: Context[ServingNode]
) -> OffsetFetchResponseGroup:
    response = OffsetFetchResponseGroup(group_id=asked.group_id)
    try:
        _open(asked.group_id, context)
        context.node.groups.check_fetch(asked.group_id, asked.member_id, asked.member_epoch)
    except KafkaError as error:
        response.error_code = error.code
        return response
    offsets = context.node.groups.offsets.of_group(asked.group_id)
    pending = context.node.groups.store.pending.of_group(asked.group_id) if require_stable else frozenset()
    by_id = context.version >= OFFSET_FETCH_TOPIC_IDS_SINCE
    if asked.topics is None:
        topics = context.node.cluster.topics
        for name, indexes in _by_topic(offsets):
            topic_id = topics[name].id if name in topics else ZERO_UUID
            if not by_id or name in topics:
                response.topics.append(_fetched(name, topic_id, indexes, offsets.get, pending, context))
        return response
    topics_once = merged(asked.topics, lambda topic: (topic.name, topic.topic_id), "partition_indexes")
    unknown: list[OffsetFetchResponseTopics] = []
    for topic in topics_once:
        found, missing = find_topic(topic.name, topic.topic_id, by_id, context)
        name = found.name if by_id and found is not None else topic.name
        answer = _fetched(name, topic.topic_id, topic.partition_indexes, offsets.get, pending, context)
        if by_id and missing:
            for partition in answer.partitions:
                partition.error_code = missing
        (unknown if by_id and missing else response.topics).append(answer)
    response.topics += unknown  # which Apache Kafka names last
    return response


def _fetched(
    name: str,
    topic_id: bytes,
    indexes: Iterable[int],
    find: Callable[[PartitionKey], CommittedOffset | None],
    pending: Collection[PartitionKey],
    context: Context[ServingNode],
) -> OffsetFetchResponseTopics:
    topic = OffsetFetchResponseTopics(name=name, topic_id=topic_id)
    for index in indexes:
        unstable = (name, index) in pending
        committed = (None if unstable else find((name, index))) or NO_OFFSET
        context.claim(OFFSET_BYTES + len(committed.metadata))
        topic.partitions.append(
            OffsetFetchResponsePartitions(
                partition_index=index,
                committed_offset=committed.offset,
                committed_leader_epoch=committed.leader_epoch,
                metadata=committed.metadata,
                error_code=_UNSTABLE if unstable else ErrorCode.NONE,
            )
        )
    return topic
