"""The records of consumer groups in `__consumer_offsets`: converts changes to Kafka's format and back.

A key is its type and fields without flexible encoding; a value is its version, 0, and flexible fields. A null
value is a tombstone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from penstock.broker.coordination.records import KeyAndValue
from penstock.broker.groups.consumer import state
from penstock.broker.groups.consumer.key_types import (
    CURRENT_KEY,
    GROUP_KEY,
    MEMBER_KEY,
    METADATA_KEY,
    REGEX_KEY,
    TARGET_KEY,
    TARGET_MEMBER_KEY,
)
from penstock.broker.groups.consumer.state import Change, Current, MemberState, Partition, Subscription
from penstock.broker.groups.metadata_view import by_topic
from penstock.broker.groups.records import (
    VALUE_VERSION,
    StoredKey,
    key_bytes,
    value_body,
    value_bytes,
)
from penstock.errors import DecodeError
from penstock.protocol.message import Message
from penstock.protocol.messages import consumer_group_current_member_assignment_value as current_value
from penstock.protocol.messages import consumer_group_member_metadata_value as member_value
from penstock.protocol.messages import consumer_group_target_assignment_member_value as target_value
from penstock.protocol.messages.consumer_group_current_member_assignment_key import (
    ConsumerGroupCurrentMemberAssignmentKey,
)
from penstock.protocol.messages.consumer_group_member_metadata_key import ConsumerGroupMemberMetadataKey
from penstock.protocol.messages.consumer_group_metadata_key import ConsumerGroupMetadataKey
from penstock.protocol.messages.consumer_group_metadata_value import ConsumerGroupMetadataValue
from penstock.protocol.messages.consumer_group_partition_metadata_key import ConsumerGroupPartitionMetadataKey
from penstock.protocol.messages.consumer_group_regular_expression_key import (
    ConsumerGroupRegularExpressionKey,
)
from penstock.protocol.messages.consumer_group_regular_expression_value import (
    ConsumerGroupRegularExpressionValue,
)
from penstock.protocol.messages.consumer_group_target_assignment_member_key import (
    ConsumerGroupTargetAssignmentMemberKey,
)
from penstock.protocol.messages.consumer_group_target_assignment_metadata_key import (
    ConsumerGroupTargetAssignmentMetadataKey,
)
from penstock.protocol.messages.consumer_group_target_assignment_metadata_value import (
    ConsumerGroupTargetAssignmentMetadataValue,
)

KIND = "consumer group"
"""The kind of group that errors name."""


# --- writing ---------------------------------------------------------------------------------------------


def records_of(group_id: str, changes: Iterable[Change]) -> list[KeyAndValue]:
    """Return the records of changes to a group, in order.

    The removal of a group includes an extra tombstone, for the topic metadata that Apache Kafka 4.0 stored.
    """
    records: list[KeyAndValue] = []
    for change in changes:
        if isinstance(change, state.SetEpoch) and change.value is None:
            key = ConsumerGroupPartitionMetadataKey(group_id=group_id)
            records.append((key_bytes(METADATA_KEY, key), None))
        records.append(_record(group_id, change))
    return records


def _record(group_id: str, change: Change) -> KeyAndValue:
    if isinstance(change, state.SetCurrent):
        key: Message = ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=change.member_id)
        return key_bytes(CURRENT_KEY, key), value_bytes(
            _current_value(change.value) if change.value else None
        )
    if isinstance(change, state.SetTarget):
        key = ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=change.member_id)
        return key_bytes(TARGET_MEMBER_KEY, key), value_bytes(
            None if change.value is None else _target_value(change.value)
        )
    if isinstance(change, state.SetSubscription):
        key = ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=change.member_id)
        return key_bytes(MEMBER_KEY, key), value_bytes(_member_value(change.value) if change.value else None)
    if isinstance(change, state.SetTargetEpoch):
        key = ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id)
        value: Message | None = None
        if change.value is not None:
            epoch, time_ms = change.value
            value = ConsumerGroupTargetAssignmentMetadataValue(
                assignment_epoch=epoch, assignment_timestamp=time_ms
            )
        return key_bytes(TARGET_KEY, key), value_bytes(value)
    if isinstance(change, state.SetEpoch):
        key = ConsumerGroupMetadataKey(group_id=group_id)
        value = None
        if change.value is not None:
            value = ConsumerGroupMetadataValue(epoch=change.value[0], metadata_hash=change.value[1])
        return key_bytes(GROUP_KEY, key), value_bytes(value)
    key = ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=change.regex)
    value = None
    if change.value is not None:
        value = ConsumerGroupRegularExpressionValue(
            topics=list(change.value.topics),
            version=change.value.version,
            timestamp=change.value.timestamp_ms,
        )
    return key_bytes(REGEX_KEY, key), value_bytes(value)


def _member_value(value: Subscription) -> Message:
    classic = None
    if value.session_timeout_ms is not None:
        protocols = [member_value.ClassicProtocol(name=name, metadata=data) for name, data in value.protocols]
        classic = member_value.ClassicMemberMetadata(
            session_timeout_ms=value.session_timeout_ms, supported_protocols=protocols
        )
    return member_value.ConsumerGroupMemberMetadataValue(
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        subscribed_topic_names=list(value.topics),
        subscribed_topic_regex=value.regex,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        server_assignor=value.assignor,
        classic_member_metadata=classic,
    )


def _target_value(partitions: frozenset[Partition]) -> Message:
    return target_value.ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=[
            target_value.TopicPartition(topic_id=topic, partitions=indexes)
            for topic, indexes in by_topic(partitions).items()
        ]
    )


def _current_value(value: Current) -> Message:
    return current_value.ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=value.epoch,
        previous_member_epoch=value.previous_epoch,
        state=value.state,
        assigned_partitions=_with_epochs(value.assigned),
        partitions_pending_revocation=_with_epochs(value.revoking),
    )


def _with_epochs(partitions: Mapping[Partition, int]) -> list[current_value.TopicPartitions]:
    return [
        current_value.TopicPartitions(
            topic_id=topic,
            partitions=indexes,
            assignment_epochs=[partitions[topic, index] for index in indexes],
        )
        for topic, indexes in by_topic(partitions).items()
    ]


# --- reading ---------------------------------------------------------------------------------------------


def read_change(key_type: int, key: bytes, value: bytes | None) -> tuple[StoredKey, Change | None]:
    """Return the parsed key of a record, and its change, which is None for a tombstone.

    `key` comes without its type.

    Raises:
        DecodeError: the record is damaged, or its value has a newer version than is supported.
    """
    if key_type == CURRENT_KEY:
        current = ConsumerGroupCurrentMemberAssignmentKey.decode(key, 0)
        stored = key_type, current.group_id, current.member_id
        return stored, None if value is None else state.SetCurrent(current.member_id, _read_current(value))
    if key_type == TARGET_MEMBER_KEY:
        target = ConsumerGroupTargetAssignmentMemberKey.decode(key, 0)
        stored = key_type, target.group_id, target.member_id
        return stored, None if value is None else state.SetTarget(target.member_id, _read_target(value))
    if key_type == MEMBER_KEY:
        member = ConsumerGroupMemberMetadataKey.decode(key, 0)
        stored = key_type, member.group_id, member.member_id
        return stored, None if value is None else state.SetSubscription(member.member_id, _read_member(value))
    if key_type == REGEX_KEY:
        regex = ConsumerGroupRegularExpressionKey.decode(key, 0)
        stored = key_type, regex.group_id, regex.regular_expression
        return stored, None if value is None else state.SetRegex(regex.regular_expression, _read_regex(value))
    return _read_of_group(key_type, key, value)


def _read_of_group(key_type: int, key: bytes, value: bytes | None) -> tuple[StoredKey, Change | None]:
    if key_type == TARGET_KEY:
        group_id = ConsumerGroupTargetAssignmentMetadataKey.decode(key, 0).group_id
        if value is None:
            return (key_type, group_id, ""), None
        target = ConsumerGroupTargetAssignmentMetadataValue.decode(value_body(value, KIND), VALUE_VERSION)
        return (key_type, group_id, ""), state.SetTargetEpoch(
            (target.assignment_epoch, target.assignment_timestamp)
        )
    if key_type == GROUP_KEY:
        group_id = ConsumerGroupMetadataKey.decode(key, 0).group_id
        if value is None:
            return (key_type, group_id, ""), None
        group = ConsumerGroupMetadataValue.decode(value_body(value, KIND), VALUE_VERSION)
        return (key_type, group_id, ""), state.SetEpoch((group.epoch, group.metadata_hash))
    # Apache Kafka 4.0 stored the topics of a group; its later releases and Penstock have a hash of them.
    return (key_type, ConsumerGroupPartitionMetadataKey.decode(key, 0).group_id, ""), None


def _read_member(value: bytes) -> Subscription:
    read = member_value.ConsumerGroupMemberMetadataValue.decode(value_body(value, KIND), VALUE_VERSION)
    classic = read.classic_member_metadata
    if classic is not None and not classic.session_timeout_ms and not classic.supported_protocols:
        classic = None  # the field is missing
    return Subscription(
        read.instance_id,
        read.rack_id,
        read.client_id,
        read.client_host,
        tuple(sorted(read.subscribed_topic_names)),
        read.subscribed_topic_regex or "",
        read.rebalance_timeout_ms,
        read.server_assignor,
        None if classic is None else classic.session_timeout_ms,
        () if classic is None else tuple((each.name, each.metadata) for each in classic.supported_protocols),
    )


def _read_target(value: bytes) -> frozenset[Partition]:
    read = target_value.ConsumerGroupTargetAssignmentMemberValue.decode(
        value_body(value, KIND), VALUE_VERSION
    )
    return frozenset((each.topic_id, index) for each in read.topic_partitions for index in each.partitions)


def _read_current(value: bytes) -> Current:
    read = current_value.ConsumerGroupCurrentMemberAssignmentValue.decode(
        value_body(value, KIND), VALUE_VERSION
    )
    try:
        member_state = MemberState(read.state)
    except ValueError:
        member_state = MemberState.UNKNOWN
    return Current(
        read.member_epoch,
        read.previous_member_epoch,
        member_state,
        _read_epochs(read.assigned_partitions, read.member_epoch),
        _read_epochs(read.partitions_pending_revocation, read.member_epoch),
    )


def _read_epochs(topics: Iterable[current_value.TopicPartitions], member_epoch: int) -> dict[Partition, int]:
    """Return partitions with the epochs at which they were assigned.

    Apache Kafka before 4.3 did not store these epochs; the member's epoch is used then.
    """
    found: dict[Partition, int] = {}
    for each in topics:
        epochs = each.assignment_epochs or [member_epoch] * len(each.partitions)
        if len(epochs) != len(each.partitions):
            raise DecodeError(f"{len(each.partitions)} partitions with {len(epochs)} assignment epochs")
        found.update(
            {(each.topic_id, index): epoch for index, epoch in zip(each.partitions, epochs, strict=True)}
        )
    return found


def _read_regex(value: bytes) -> state.Resolved:
    read = ConsumerGroupRegularExpressionValue.decode(value_body(value, KIND), VALUE_VERSION)
    return state.Resolved(tuple(sorted(read.topics)), read.version, read.timestamp)
