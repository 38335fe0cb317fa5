"""The records of streams groups in `__consumer_offsets`: converts changes to Kafka's format and back.

A key is an int16 type, then fields without flexible encoding; a value is its version, 0, and flexible fields.
A null value is a tombstone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from penstock.broker.coordination.records import KeyAndValue
from penstock.broker.groups.records import VALUE_VERSION, RecordType, RecordTypes
from penstock.broker.groups.records import StreamsGroupKey as Key
from penstock.broker.groups.streams import state
from penstock.broker.groups.streams.state import Change, Current, Epoch, Member, MemberState
from penstock.broker.groups.streams.tasks import Task, Tasks, by_subtopology
from penstock.broker.groups.streams.topology import CopartitionGroup, InternalTopic, Subtopology, Topology
from penstock.protocol.message import Message
from penstock.protocol.messages import streams_group_current_member_assignment_value as current_value
from penstock.protocol.messages import streams_group_member_metadata_value as member_value
from penstock.protocol.messages import streams_group_metadata_value as group_value
from penstock.protocol.messages import streams_group_target_assignment_member_value as target_value
from penstock.protocol.messages import streams_group_topology_value as topology_value
from penstock.protocol.messages.streams_group_current_member_assignment_key import (
    StreamsGroupCurrentMemberAssignmentKey,
)
from penstock.protocol.messages.streams_group_member_metadata_key import StreamsGroupMemberMetadataKey
from penstock.protocol.messages.streams_group_metadata_key import StreamsGroupMetadataKey
from penstock.protocol.messages.streams_group_target_assignment_member_key import (
    StreamsGroupTargetAssignmentMemberKey,
)
from penstock.protocol.messages.streams_group_target_assignment_metadata_key import (
    StreamsGroupTargetAssignmentMetadataKey,
)
from penstock.protocol.messages.streams_group_target_assignment_metadata_value import (
    StreamsGroupTargetAssignmentMetadataValue,
)
from penstock.protocol.messages.streams_group_topology_key import StreamsGroupTopologyKey

# --- writing ---------------------------------------------------------------------------------------------


def records_of(group_id: str, changes: Iterable[Change]) -> list[KeyAndValue]:
    """Return the records of changes to a group, in order."""
    return [_RECORDS.record_of(group_id, change) for change in changes]


def _member(member: Member) -> Message:
    endpoint = member.endpoint
    return member_value.StreamsGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None if endpoint is None else member_value.Endpoint(host=endpoint[0], port=endpoint[1]),
        client_tags=[member_value.KeyValue(key=key, value=text) for key, text in member.tags],
    )


def _target(tasks: Tasks) -> Message:
    return target_value.StreamsGroupTargetAssignmentMemberValue(
        active_tasks=_target_tasks(tasks.active),
        standby_tasks=_target_tasks(tasks.standby),
        warmup_tasks=_target_tasks(tasks.warmup),
    )


def _target_tasks(tasks: Iterable[Task]) -> list[target_value.TaskIds]:
    return [
        target_value.TaskIds(subtopology_id=each, partitions=indexes)
        for each, indexes in by_subtopology(tasks).items()
    ]


def _current(current: Current) -> Message:
    return current_value.StreamsGroupCurrentMemberAssignmentValue(
        member_epoch=current.epoch,
        previous_member_epoch=current.previous_epoch,
        state=current.state,
        active_tasks=_current_tasks(current.assigned.active, current.epochs),
        standby_tasks=_current_tasks(current.assigned.standby),
        warmup_tasks=_current_tasks(current.assigned.warmup),
        active_tasks_pending_revocation=_current_tasks(current.revoking.active, current.epochs),
        standby_tasks_pending_revocation=_current_tasks(current.revoking.standby),
        warmup_tasks_pending_revocation=_current_tasks(current.revoking.warmup),
    )


def _current_tasks(
    tasks: Iterable[Task], epochs: Mapping[Task, int] | None = None
) -> list[current_value.TaskIds]:
    return [
        current_value.TaskIds(
            subtopology_id=each,
            partitions=indexes,
            assignment_epochs=[] if epochs is None else [epochs[each, index] for index in indexes],
        )
        for each, indexes in by_subtopology(tasks).items()
    ]


def _target_epoch(value: tuple[int, int]) -> Message:
    return StreamsGroupTargetAssignmentMetadataValue(assignment_epoch=value[0], assignment_timestamp=value[1])


def _epoch(value: Epoch) -> Message:
    return group_value.StreamsGroupMetadataValue(
        epoch=value.epoch,
        metadata_hash=value.metadata_hash,
        validated_topology_epoch=value.validated_topology,
        last_assignment_configs=[
            group_value.LastAssignmentConfig(key=name, value=text) for name, text in value.configs
        ],
    )


def _topology(value: Topology) -> Message:
    return topology_value.StreamsGroupTopologyValue(
        epoch=value.epoch, subtopologies=[_subtopology(each) for each in value.subtopologies]
    )


def _subtopology(each: Subtopology) -> topology_value.Subtopology:
    return topology_value.Subtopology(
        subtopology_id=each.id,
        source_topics=list(each.source_topics),
        source_topic_regex=list(each.source_regexes),
        state_changelog_topics=[_topic(topic) for topic in each.changelogs],
        repartition_sink_topics=list(each.repartition_sinks),
        repartition_source_topics=[_topic(topic) for topic in each.repartition_sources],
        copartition_groups=[
            topology_value.CopartitionGroup(
                source_topics=list(group.source_topics),
                source_topic_regex=list(group.source_regexes),
                repartition_source_topics=list(group.repartition_topics),
            )
            for group in each.copartition_groups
        ],
    )


def _topic(topic: InternalTopic) -> topology_value.TopicInfo:
    return topology_value.TopicInfo(
        name=topic.name,
        partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        topic_configs=[topology_value.TopicConfig(key=key, value=text) for key, text in topic.configs],
    )


# --- reading ---------------------------------------------------------------------------------------------


def _read_member(body: bytes) -> Member:
    read = member_value.StreamsGroupMemberMetadataValue.decode(body, VALUE_VERSION)
    endpoint = read.user_endpoint
    return Member(
        read.instance_id,
        read.rack_id,
        read.client_id,
        read.client_host,
        read.rebalance_timeout_ms,
        read.topology_epoch,
        read.process_id,
        None if endpoint is None else (endpoint.host, endpoint.port),
        tuple(sorted((tag.key, tag.value) for tag in read.client_tags)),
    )


def _read_target(body: bytes) -> Tasks:
    read = target_value.StreamsGroupTargetAssignmentMemberValue.decode(body, VALUE_VERSION)
    return Tasks(*(_tasks(each) for each in (read.active_tasks, read.standby_tasks, read.warmup_tasks)))


def _tasks(listed: Iterable[target_value.TaskIds | current_value.TaskIds]) -> frozenset[Task]:
    return frozenset((each.subtopology_id, index) for each in listed for index in each.partitions)


def _read_current(body: bytes) -> Current:
    read = current_value.StreamsGroupCurrentMemberAssignmentValue.decode(body, VALUE_VERSION)
    epochs: dict[Task, int] = {}
    for each in (*read.active_tasks, *read.active_tasks_pending_revocation):
        # A record without these epochs was written before there were any: the member's own is no later.
        known = each.assignment_epochs or [read.member_epoch] * len(each.partitions)
        epochs.update(
            ((each.subtopology_id, index), epoch)
            for index, epoch in zip(each.partitions, known, strict=False)
        )
    assigned = Tasks(*(_tasks(each) for each in (read.active_tasks, read.standby_tasks, read.warmup_tasks)))
    revoking = Tasks(
        _tasks(read.active_tasks_pending_revocation),
        _tasks(read.standby_tasks_pending_revocation),
        _tasks(read.warmup_tasks_pending_revocation),
    )
    for task in assigned.active | revoking.active:
        epochs.setdefault(task, read.member_epoch)
    known_states = {int(each) for each in MemberState}
    member_state = MemberState(read.state) if read.state in known_states else MemberState.UNKNOWN
    return Current(read.member_epoch, read.previous_member_epoch, member_state, assigned, revoking, epochs)


def _read_target_epoch(body: bytes) -> tuple[int, int]:
    read = StreamsGroupTargetAssignmentMetadataValue.decode(body, VALUE_VERSION)
    return read.assignment_epoch, read.assignment_timestamp


def _read_epoch(body: bytes) -> Epoch:
    read = group_value.StreamsGroupMetadataValue.decode(body, VALUE_VERSION)
    configs = tuple(sorted((each.key, each.value) for each in read.last_assignment_configs or ()))
    return Epoch(read.epoch, read.metadata_hash, read.validated_topology_epoch, configs)


def _read_topology(body: bytes) -> Topology:
    read = topology_value.StreamsGroupTopologyValue.decode(body, VALUE_VERSION)
    return Topology(read.epoch, tuple(_read_subtopology(each) for each in read.subtopologies))


def _read_subtopology(read: topology_value.Subtopology) -> Subtopology:
    return Subtopology(
        read.subtopology_id,
        tuple(read.source_topics),
        tuple(read.source_topic_regex),
        tuple(_read_topic(topic) for topic in read.repartition_source_topics),
        tuple(read.repartition_sink_topics),
        tuple(_read_topic(topic) for topic in read.state_changelog_topics),
        tuple(
            CopartitionGroup(
                tuple(group.source_topics),
                tuple(group.source_topic_regex),
                tuple(group.repartition_source_topics),
            )
            for group in read.copartition_groups
        ),
    )


def _read_topic(read: topology_value.TopicInfo) -> InternalTopic:
    configs = tuple((each.key, each.value) for each in read.topic_configs)
    return InternalTopic(read.name, read.partitions, read.replication_factor, configs)


# --- both ------------------------------------------------------------------------------------------------

_RECORDS = RecordTypes(
    "streams group",
    RecordType(Key.MEMBER, state.SetMember, StreamsGroupMemberMetadataKey, _member, _read_member),
    RecordType(
        Key.TARGET_MEMBER, state.SetTarget, StreamsGroupTargetAssignmentMemberKey, _target, _read_target
    ),
    RecordType(
        Key.CURRENT, state.SetCurrent, StreamsGroupCurrentMemberAssignmentKey, _current, _read_current
    ),
    RecordType(Key.GROUP, state.SetEpoch, StreamsGroupMetadataKey, _epoch, _read_epoch, ""),
    RecordType(
        Key.TARGET,
        state.SetTargetEpoch,
        StreamsGroupTargetAssignmentMetadataKey,
        _target_epoch,
        _read_target_epoch,
        "",
    ),
    RecordType(Key.TOPOLOGY, state.SetTopology, StreamsGroupTopologyKey, _topology, _read_topology, ""),
)

read_change = _RECORDS.read
