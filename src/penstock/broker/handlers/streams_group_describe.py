"""StreamsGroupDescribe (89): topology, members and tasks of streams groups (KIP-1071)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from penstock.broker.context import Context
from penstock.broker.groups.settings import STICKY
from penstock.broker.groups.streams.configuring import NOT_CONFIGURED
from penstock.broker.groups.streams.coordinator import GROUP_BYTES
from penstock.broker.groups.streams.group import StreamsGroup
from penstock.broker.groups.streams.state import MEMBER_BYTES, Offsets, StreamsState
from penstock.broker.groups.streams.tasks import Task, Tasks, by_subtopology
from penstock.broker.groups.streams.topology import InternalTopic
from penstock.broker.handlers.describe_groups import describe_kind, missing_message
from penstock.broker.handlers.streams_groups import has_streams_groups
from penstock.errors import KafkaError
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.messages.streams_group_describe_request import StreamsGroupDescribeRequest
from penstock.protocol.messages.streams_group_describe_response import (
    Assignment,
    DescribedGroup,
    Endpoint,
    KeyValue,
    Member,
    StreamsGroupDescribeResponse,
    Subtopology,
    TaskIds,
    TaskOffset,
    TopicInfo,
    Topology,
)

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode


def streams_group_describe(
    request: StreamsGroupDescribeRequest, context: Context[ServingNode]
) -> StreamsGroupDescribeResponse:
    """Describe streams groups by their ids; a group that is named repeatedly is described once."""
    answer = describe_kind(
        StreamsGroupDescribeResponse, request, context, _describe, is_offered=has_streams_groups(context)
    )
    for group in answer.groups:
        if request.include_topology_description and not group.error_code:
            group.topology_description_status = NOT_STORED
    return answer


def _describe(group_id: str, context: Context[ServingNode]) -> DescribedGroup:
    service = context.node.groups
    try:
        if not group_id:
            raise error_for(ErrorCode.INVALID_GROUP_ID, "a group needs an id")
        service.open(group_id)
        service.settle(context.now)
        group = service.streams.groups.get(group_id)
        if group is None:
            raise error_for(ErrorCode.GROUP_ID_NOT_FOUND, missing_message(group_id, "streams", context))
    except KafkaError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code, error_message=error.detail)
    stored = group.stored
    tasks = sum(each.size for each in stored.targets.values()) + stored.task_offsets
    context.claim(
        GROUP_BYTES + stored.topology_bytes + 2 * MEMBER_BYTES * len(stored.members) + TASK_BYTES * tasks
    )
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state,
        group_epoch=stored.epoch,
        assignment_epoch=stored.target_epoch,
        topology=_topology(group, context),
        members=[_member(stored, member_id) for member_id in stored.members],
        assignor_name=STICKY,
    )


NOT_STORED = 1
"""The status of a topology description that no plugin has stored: Penstock has no plugins."""

TASK_BYTES = 100
"""The approximate size in bytes of a task in a response, where it is in both the target and the current
assignment.
"""


def _topology(group: StreamsGroup, context: Context[ServingNode]) -> Topology | None:
    """Return the group's topology, with partition counts of internal topics if known; None if it has none."""
    topology = group.stored.topology
    if topology is None:
        return None
    try:
        configured = group.configured(topology, context.node.groups.streams.view)
    except KafkaError:  # topics have grown beyond what the topology can be worked on with
        configured = NOT_CONFIGURED
    internal = configured.internal if configured.is_ready else {}
    return Topology(
        epoch=topology.epoch,
        subtopologies=[
            Subtopology(
                subtopology_id=each.id,
                source_topics=sorted(each.source_topics),
                repartition_sink_topics=sorted(each.repartition_sinks),
                state_changelog_topics=_topics(internal.get(topic.name, topic) for topic in each.changelogs),
                repartition_source_topics=_topics(
                    internal.get(topic.name, topic) for topic in each.repartition_sources
                ),
            )
            for each in sorted(topology.subtopologies)
        ],
    )


def _topics(topics: Iterable[InternalTopic]) -> list[TopicInfo]:
    return [
        TopicInfo(
            name=topic.name,
            partitions=topic.partitions,
            replication_factor=topic.replication_factor,
            topic_configs=[KeyValue(key=key, value=text) for key, text in topic.configs],
        )
        for topic in sorted(topics)
    ]


def _member(stored: StreamsState, member_id: str) -> Member:
    member, current = stored.members[member_id], stored.current(member_id)
    endpoint, offsets = member.endpoint, stored.offsets.get(member_id, Offsets())
    return Member(
        member_id=member_id,
        member_epoch=current.epoch,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None if endpoint is None else Endpoint(host=endpoint[0], port=endpoint[1]),
        client_tags=[KeyValue(key=key, value=text) for key, text in member.tags],
        task_offsets=_offsets(offsets.reached),
        task_end_offsets=_offsets(offsets.ends),
        assignment=_assignment(current.assigned),
        target_assignment=_assignment(stored.target(member_id)),
        is_classic=False,
    )


def _offsets(offsets: Mapping[Task, int]) -> list[TaskOffset]:
    return [
        TaskOffset(subtopology_id=subtopology, partition=partition, offset=offset)
        for (subtopology, partition), offset in sorted(offsets.items())
    ]


def _assignment(tasks: Tasks) -> Assignment:
    return Assignment(
        active_tasks=_task_ids(tasks.active),
        standby_tasks=_task_ids(tasks.standby),
        warmup_tasks=_task_ids(tasks.warmup),
    )


def _task_ids(tasks: Iterable[Task]) -> list[TaskIds]:
    return [
        TaskIds(subtopology_id=each, partitions=indexes) for each, indexes in by_subtopology(tasks).items()
    ]
