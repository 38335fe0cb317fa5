"""DescribeShareGroupOffsets (90): the start offset of share groups in each partition (KIP-932).

v1 adds the lag (KIP-1226). A partition without stored state has start offset -1, as in OffsetFetch. A state
that cannot be read now causes an error.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

from penstock.broker.context import Context
from penstock.broker.groups.share.group import NO_START
from penstock.broker.handlers.share_groups import PATIENCE_S, late, open_group
from penstock.broker.requests.later import Later
from penstock.broker.requests.repetition import merged, once
from penstock.errors import KafkaError
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages import read_share_group_state_summary_request as summary
from penstock.protocol.messages.describe_share_group_offsets_request import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from penstock.protocol.messages.describe_share_group_offsets_response import (
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode

UNKNOWN = -1
"""The value -1: an unknown lag, or an unknown number of completed deliveries."""

PARTITION_BYTES = 40

_LATER = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)
"""Retriable errors of a share coordinator, after which it is unknown if the share partition has a
state.
"""


def describe_share_group_offsets(
    request: DescribeShareGroupOffsetsRequest, context: Context[ServingNode]
) -> Any:
    """Return start offset and lag of the requested partitions; if none is named, of all with a state."""
    context.begin_claims()
    later = Later(context.node.purgatory)
    groups: list[DescribeShareGroupOffsetsResponseGroup] = []
    for asked in once(request.groups, attrgetter("group_id")):
        group = DescribeShareGroupOffsetsResponseGroup(group_id=asked.group_id)
        groups.append(group)
        try:
            _begin(asked, group, context, later)
        except KafkaError as error:
            group.error_code, group.error_message = error.code, error.detail
    return later.answer(context.now + PATIENCE_S, lambda: DescribeShareGroupOffsetsResponse(groups=groups))


def _begin(
    asked: DescribeShareGroupOffsetsRequestGroup,
    group: DescribeShareGroupOffsetsResponseGroup,
    context: Context[ServingNode],
    later: Later,
) -> None:
    """Request the states of one group's partitions from the share coordinator.

    Raises:
        KafkaError: the error of the group in the response.
    """
    if not asked.group_id:
        return
    open_group(asked.group_id, context)
    request = summary.ReadShareGroupStateSummaryRequest(group_id=asked.group_id)
    for name, topic_id, partitions in _named(asked, context):
        context.claim(len(name) + PARTITION_BYTES * len(partitions))
        if topic_id is None:
            group.topics.append(_topic(name, bytes(16), [_nothing(index) for index in partitions]))
            continue
        request.topics.append(
            summary.ReadStateSummaryData(
                topic_id=topic_id,
                partitions=[summary.PartitionData(partition=index) for index in partitions],
            )
        )
    if not request.topics:
        return
    error = late()
    group.error_code, group.error_message = error.code, error.detail

    def take(answer: Any) -> None:
        group.error_code, group.error_message = 0, None
        topics = context.node.cluster.topics_by_id
        for result in answer.results:
            if result.topic_id in topics:
                name = topics[result.topic_id].name
                described = [_described(name, each, context) for each in result.partitions]
                group.topics.append(_topic(name, result.topic_id, described))

    context.node.groups.share.ask(request, later.expect(take))


def _named(
    asked: DescribeShareGroupOffsetsRequestGroup, context: Context[ServingNode]
) -> list[tuple[str, bytes | None, list[int]]]:
    """Return the topics of a request: name, id (None for an unknown topic) and partitions."""
    cluster = context.node.cluster
    if asked.topics is not None:
        asked.topics = merged(asked.topics, attrgetter("topic_name"), "partitions")
        return [
            (
                each.topic_name,
                cluster.topics[each.topic_name].id if each.topic_name in cluster.topics else None,
                each.partitions,
            )
            for each in asked.topics
        ]
    found = context.node.groups.share.groups.get(asked.group_id)
    initialized = {} if found is None else found.stored.initialized
    return [
        (cluster.topics_by_id[topic_id].name, topic_id, sorted(each.partitions))
        for topic_id, each in initialized.items()
        if topic_id in cluster.topics_by_id
    ]


def _topic(
    name: str, topic_id: bytes, partitions: list[DescribeShareGroupOffsetsResponsePartition]
) -> DescribeShareGroupOffsetsResponseTopic:
    return DescribeShareGroupOffsetsResponseTopic(topic_name=name, topic_id=topic_id, partitions=partitions)


def _nothing(index: int) -> DescribeShareGroupOffsetsResponsePartition:
    return DescribeShareGroupOffsetsResponsePartition(partition_index=index, start_offset=NO_START)


def _described(
    topic: str, state: Any, context: Context[ServingNode]
) -> DescribeShareGroupOffsetsResponsePartition:
    if state.error_code in _LATER:
        return DescribeShareGroupOffsetsResponsePartition(
            partition_index=state.partition,
            start_offset=NO_START,
            error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE,
            error_message="the share coordinator does not have the state of the partition yet: ask again",
        )
    if state.error_code:
        return _nothing(state.partition)
    described = DescribeShareGroupOffsetsResponsePartition(
        partition_index=state.partition, start_offset=state.start_offset, leader_epoch=state.leader_epoch
    )
    if state.start_offset != NO_START and state.delivery_complete_count != UNKNOWN:
        try:
            end_offset = context.node.end_offset(topic, state.partition)
            described.lag = end_offset - state.start_offset - state.delivery_complete_count
        except KafkaError as error:
            return DescribeShareGroupOffsetsResponsePartition(
                partition_index=state.partition, error_code=error.code, error_message=error.detail
            )
    return described
