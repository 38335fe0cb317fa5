"""The records of share groups in `__consumer_offsets`: converts changes to Kafka's format and back.

A key is its type and fields without flexible encoding; a value is its version, 0, and flexible fields. A null
value is a tombstone.
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.broker.coordination.records import KeyAndValue
from penstock.broker.groups.metadata_view import Partition, by_topic
from penstock.broker.groups.records import (
    VALUE_VERSION,
    StoredKey,
    key_bytes,
    value_body,
    value_bytes,
)
from penstock.broker.groups.share import state
from penstock.broker.groups.share.key_types import (
    CURRENT_KEY,
    GROUP_KEY,
    MEMBER_KEY,
    PARTITIONS_KEY,
    TARGET_KEY,
    TARGET_MEMBER_KEY,
)
from penstock.broker.groups.share.state import (
    Change,
    Current,
    Initialization,
    Member,
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

KIND = "share group"
"""The kind of group that errors name."""


# --- writing ---------------------------------------------------------------------------------------------


def records_of(group_id: str, changes: Iterable[Change]) -> list[KeyAndValue]:
    """Return the records of changes to a group, in order."""
    return [_record(group_id, change) for change in changes]


def _record(group_id: str, change: Change) -> KeyAndValue:
    value: Message | None = None
    if isinstance(change, state.SetCurrent):
        key: Message = ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=change.member_id)
        if change.value is not None:
            value = current_value.ShareGroupCurrentMemberAssignmentValue(
                member_epoch=change.value.epoch,
                previous_member_epoch=change.value.previous_epoch,
                assigned_partitions=[
                    current_value.TopicPartitions(topic_id=topic_id, partitions=indexes)
                    for topic_id, indexes in by_topic(change.value.assigned).items()
                ],
            )
        return key_bytes(CURRENT_KEY, key), value_bytes(value)
    if isinstance(change, state.SetTarget):
        key = ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=change.member_id)
        if change.value is not None:
            value = target_value.ShareGroupTargetAssignmentMemberValue(
                topic_partitions=[
                    target_value.TopicPartition(topic_id=topic_id, partitions=indexes)
                    for topic_id, indexes in by_topic(change.value).items()
                ]
            )
        return key_bytes(TARGET_MEMBER_KEY, key), value_bytes(value)
    if isinstance(change, state.SetMember):
        key = ShareGroupMemberMetadataKey(group_id=group_id, member_id=change.member_id)
        if change.value is not None:
            value = ShareGroupMemberMetadataValue(
                rack_id=change.value.rack_id,
                client_id=change.value.client_id,
                client_host=change.value.client_host,
                subscribed_topic_names=list(change.value.topics),
            )
        return key_bytes(MEMBER_KEY, key), value_bytes(value)
    if isinstance(change, state.SetTargetEpoch):
        key = ShareGroupTargetAssignmentMetadataKey(group_id=group_id)
        if change.value is not None:
            epoch, time_ms = change.value
            value = ShareGroupTargetAssignmentMetadataValue(
                assignment_epoch=epoch, assignment_timestamp=time_ms
            )
        return key_bytes(TARGET_KEY, key), value_bytes(value)
    if isinstance(change, state.SetEpoch):
        key = ShareGroupMetadataKey(group_id=group_id)
        if change.value is not None:
            value = ShareGroupMetadataValue(epoch=change.value[0], metadata_hash=change.value[1])
        return key_bytes(GROUP_KEY, key), value_bytes(value)
    key = ShareGroupStatePartitionMetadataKey(group_id=group_id)
    if change.value is not None:
        value = partitions_value.ShareGroupStatePartitionMetadataValue(
            initializing_topics=_infos(change.value.initializing),
            initialized_topics=_infos(change.value.initialized),
            deleting_topics=[
                partitions_value.TopicInfo(topic_id=topic_id, topic_name=name)
                for topic_id, name in change.value.deleting.items()
            ],
        )
    return key_bytes(PARTITIONS_KEY, key), value_bytes(value)


def _infos(topics: Topics) -> list[partitions_value.TopicPartitionsInfo]:
    return [
        partitions_value.TopicPartitionsInfo(
            topic_id=topic_id, topic_name=each.name, partitions=sorted(each.partitions)
        )
        for topic_id, each in topics.items()
    ]


# --- reading ---------------------------------------------------------------------------------------------


def read_change(key_type: int, key: bytes, value: bytes | None) -> tuple[StoredKey, Change | None]:
    """Return the parsed key of a record, and its change, which is None for a tombstone.

    `key` comes without its type.

    Raises:
        DecodeError: the record is damaged, or its value has a newer version than is supported.
    """
    if key_type == CURRENT_KEY:
        current = ShareGroupCurrentMemberAssignmentKey.decode(key, 0)
        stored = key_type, current.group_id, current.member_id
        return stored, None if value is None else state.SetCurrent(current.member_id, _read_current(value))
    if key_type == TARGET_MEMBER_KEY:
        target = ShareGroupTargetAssignmentMemberKey.decode(key, 0)
        stored = key_type, target.group_id, target.member_id
        return stored, None if value is None else state.SetTarget(target.member_id, _read_target(value))
    if key_type == MEMBER_KEY:
        member = ShareGroupMemberMetadataKey.decode(key, 0)
        stored = key_type, member.group_id, member.member_id
        return stored, None if value is None else state.SetMember(member.member_id, _read_member(value))
    if key_type == TARGET_KEY:
        group_id = ShareGroupTargetAssignmentMetadataKey.decode(key, 0).group_id
        return (key_type, group_id, ""), None if value is None else _read_target_epoch(value)
    if key_type == GROUP_KEY:
        group_id = ShareGroupMetadataKey.decode(key, 0).group_id
        return (key_type, group_id, ""), None if value is None else _read_epoch(value)
    group_id = ShareGroupStatePartitionMetadataKey.decode(key, 0).group_id
    return (key_type, group_id, ""), None if value is None else _read_initialization(value)


def _read_member(value: bytes) -> Member:
    read = ShareGroupMemberMetadataValue.decode(value_body(value, KIND), VALUE_VERSION)
    topics = tuple(sorted(read.subscribed_topic_names))
    return Member(read.rack_id, read.client_id, read.client_host, topics)


def _read_target(value: bytes) -> frozenset[Partition]:
    read = target_value.ShareGroupTargetAssignmentMemberValue.decode(value_body(value, KIND), VALUE_VERSION)
    return frozenset((each.topic_id, index) for each in read.topic_partitions for index in each.partitions)


def _read_current(value: bytes) -> Current:
    read = current_value.ShareGroupCurrentMemberAssignmentValue.decode(value_body(value, KIND), VALUE_VERSION)
    assigned = frozenset(
        (each.topic_id, index) for each in read.assigned_partitions for index in each.partitions
    )
    return Current(read.member_epoch, read.previous_member_epoch, assigned)


def _read_target_epoch(value: bytes) -> Change:
    target = ShareGroupTargetAssignmentMetadataValue.decode(value_body(value, KIND), VALUE_VERSION)
    return state.SetTargetEpoch((target.assignment_epoch, target.assignment_timestamp))


def _read_epoch(value: bytes) -> Change:
    group = ShareGroupMetadataValue.decode(value_body(value, KIND), VALUE_VERSION)
    return state.SetEpoch((group.epoch, group.metadata_hash))


def _read_initialization(value: bytes) -> Change:
    read = partitions_value.ShareGroupStatePartitionMetadataValue.decode(
        value_body(value, KIND), VALUE_VERSION
    )
    return state.SetInitialization(
        Initialization(
            _read_infos(read.initializing_topics),
            _read_infos(read.initialized_topics),
            {each.topic_id: each.topic_name for each in read.deleting_topics},
        )
    )


def _read_infos(topics: Iterable[partitions_value.TopicPartitionsInfo]) -> dict[bytes, TopicPartitions]:
    return {each.topic_id: TopicPartitions(each.topic_name, frozenset(each.partitions)) for each in topics}
