"""The records of share groups in `__consumer_offsets`: converts changes to Kafka's format and back.

A key is an int16 type, then fields without flexible encoding; a value is its version, 0, and flexible fields.
A null value is a tombstone.
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.broker.coordination.records import KeyAndValue
from penstock.broker.groups.metadata_view import Partition, by_topic
from penstock.broker.groups.records import VALUE_VERSION, RecordType, RecordTypes
from penstock.broker.groups.records import ShareGroupKey as Key
from penstock.broker.groups.share import state
from penstock.broker.groups.share.state import (
    Change,
    Current,
    Member,
    ShareInitialization,
    TopicPartitions,
    Topics,
)
from penstock.protocol.message import Message
from penstock.protocol.messages import share_group_current_member_assignment_value as current_value
from penstock.protocol.messages import share_group_state_partition_metadata_value as partitions_value
from penstock.protocol.messages import share_group_target_assignment_member_value as target_value
from penstock.protocol.messages.share_group_current_member_assignment_key import (
    ShareGroupCurrentMemberAssignmentKey,
)
from penstock.protocol.messages.share_group_member_metadata_key import ShareGroupMemberMetadataKey
from penstock.protocol.messages.share_group_member_metadata_value import ShareGroupMemberMetadataValue
from penstock.protocol.messages.share_group_metadata_key import ShareGroupMetadataKey
from penstock.protocol.messages.share_group_metadata_value import ShareGroupMetadataValue
from penstock.protocol.messages.share_group_state_partition_metadata_key import (
    ShareGroupStatePartitionMetadataKey,
)
from penstock.protocol.messages.share_group_target_assignment_member_key import (
    ShareGroupTargetAssignmentMemberKey,
)
from penstock.protocol.messages.share_group_target_assignment_metadata_key import (
    ShareGroupTargetAssignmentMetadataKey,
)
from penstock.protocol.messages.share_group_target_assignment_metadata_value import (
    ShareGroupTargetAssignmentMetadataValue,
)

# --- writing ---------------------------------------------------------------------------------------------


def records_of(group_id: str, changes: Iterable[Change]) -> list[KeyAndValue]:
    """Return the records of changes to a group, in order."""
    return [_RECORDS.record_of(group_id, change) for change in changes]


def _member(value: Member) -> Message:
    return ShareGroupMemberMetadataValue(
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        subscribed_topic_names=list(value.topics),
    )


def _target(partitions: frozenset[Partition]) -> Message:
    return target_value.ShareGroupTargetAssignmentMemberValue(
        topic_partitions=[
            target_value.TopicPartition(topic_id=topic_id, partitions=indexes)
            for topic_id, indexes in by_topic(partitions).items()
        ]
    )


def _current(value: Current) -> Message:
    return current_value.ShareGroupCurrentMemberAssignmentValue(
        member_epoch=value.epoch,
        previous_member_epoch=value.previous_epoch,
        assigned_partitions=[
            current_value.TopicPartitions(topic_id=topic_id, partitions=indexes)
            for topic_id, indexes in by_topic(value.assigned).items()
        ],
    )


def _target_epoch(value: tuple[int, int]) -> Message:
    return ShareGroupTargetAssignmentMetadataValue(assignment_epoch=value[0], assignment_timestamp=value[1])


def _epoch(value: tuple[int, int]) -> Message:
    return ShareGroupMetadataValue(epoch=value[0], metadata_hash=value[1])


def _initialization(value: ShareInitialization) -> Message:
    return partitions_value.ShareGroupStatePartitionMetadataValue(
        initializing_topics=_infos(value.initializing),
        initialized_topics=_infos(value.initialized),
        deleting_topics=[
            partitions_value.TopicInfo(topic_id=topic_id, topic_name=name)
            for topic_id, name in value.deleting.items()
        ],
    )


def _infos(topics: Topics) -> list[partitions_value.TopicPartitionsInfo]:
    return [
        partitions_value.TopicPartitionsInfo(
            topic_id=topic_id, topic_name=each.name, partitions=sorted(each.partitions)
        )
        for topic_id, each in topics.items()
    ]


# --- reading ---------------------------------------------------------------------------------------------


def _read_member(body: bytes) -> Member:
    read = ShareGroupMemberMetadataValue.decode(body, VALUE_VERSION)
    topics = tuple(sorted(read.subscribed_topic_names))
    return Member(read.rack_id, read.client_id, read.client_host, topics)


def _read_target(body: bytes) -> frozenset[Partition]:
    read = target_value.ShareGroupTargetAssignmentMemberValue.decode(body, VALUE_VERSION)
    return frozenset((each.topic_id, index) for each in read.topic_partitions for index in each.partitions)


def _read_current(body: bytes) -> Current:
    read = current_value.ShareGroupCurrentMemberAssignmentValue.decode(body, VALUE_VERSION)
    assigned = frozenset(
        (each.topic_id, index) for each in read.assigned_partitions for index in each.partitions
    )
    return Current(read.member_epoch, read.previous_member_epoch, assigned)


def _read_target_epoch(body: bytes) -> tuple[int, int]:
    read = ShareGroupTargetAssignmentMetadataValue.decode(body, VALUE_VERSION)
    return read.assignment_epoch, read.assignment_timestamp


def _read_epoch(body: bytes) -> tuple[int, int]:
    read = ShareGroupMetadataValue.decode(body, VALUE_VERSION)
    return read.epoch, read.metadata_hash


def _read_initialization(body: bytes) -> ShareInitialization:
    read = partitions_value.ShareGroupStatePartitionMetadataValue.decode(body, VALUE_VERSION)
    return ShareInitialization(
        _read_infos(read.initializing_topics),
        _read_infos(read.initialized_topics),
        {each.topic_id: each.topic_name for each in read.deleting_topics},
    )


def _read_infos(topics: Iterable[partitions_value.TopicPartitionsInfo]) -> dict[bytes, TopicPartitions]:
    return {each.topic_id: TopicPartitions(each.topic_name, frozenset(each.partitions)) for each in topics}


# --- both ------------------------------------------------------------------------------------------------

_RECORDS = RecordTypes(
    "share group",
    RecordType(Key.MEMBER, state.SetMember, ShareGroupMemberMetadataKey, _member, _read_member),
    RecordType(
        Key.TARGET_MEMBER, state.SetTarget, ShareGroupTargetAssignmentMemberKey, _target, _read_target
    ),
    RecordType(Key.CURRENT, state.SetCurrent, ShareGroupCurrentMemberAssignmentKey, _current, _read_current),
    RecordType(Key.GROUP, state.SetEpoch, ShareGroupMetadataKey, _epoch, _read_epoch, ""),
    RecordType(
        Key.TARGET,
        state.SetTargetEpoch,
        ShareGroupTargetAssignmentMetadataKey,
        _target_epoch,
        _read_target_epoch,
        "",
    ),
    RecordType(
        Key.PARTITIONS,
        state.SetInitialization,
        ShareGroupStatePartitionMetadataKey,
        _initialization,
        _read_initialization,
        "",
    ),
)

read_change = _RECORDS.read
