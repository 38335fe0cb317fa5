"""The records of consumer groups in `__consumer_offsets`: converts changes to Kafka's format and back.

A key is an int16 type, then fields without flexible encoding; a value is its version, 0, and flexible fields.
A null value is a tombstone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from penstock.broker.coordination.records import KeyAndValue
from penstock.broker.groups.consumer import state
from penstock.broker.groups.consumer.state import (
    Change,
    ConsumerSubscription,
    Current,
    MemberState,
    Partition,
    Resolved,
)
from penstock.broker.groups.metadata_view import by_topic
from penstock.broker.groups.records import VALUE_VERSION, RecordType, RecordTypes, StoredKey, key_bytes
from penstock.broker.groups.records import ConsumerGroupKey as Key
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

# --- writing ---------------------------------------------------------------------------------------------


def records_of(group_id: str, changes: Iterable[Change]) -> list[KeyAndValue]:
    """Return the records of changes to a group, in order.

    The removal of a group includes an extra tombstone, for the topic metadata that Apache Kafka 4.0 stored.
    """
    records: list[KeyAndValue] = []
    for change in changes:
        if isinstance(change, state.SetEpoch) and change.value is None:
            key = ConsumerGroupPartitionMetadataKey(group_id=group_id)
            records.append((key_bytes(Key.METADATA, key), None))
        records.append(_RECORDS.record_of(group_id, change))
    return records


def _member(value: ConsumerSubscription) -> Message:
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


def _target(partitions: frozenset[Partition]) -> Message:
    return target_value.ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=[
            target_value.TopicPartition(topic_id=topic, partitions=indexes)
            for topic, indexes in by_topic(partitions).items()
        ]
    )


def _current(value: Current) -> Message:
    return current_value.ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=value.epoch,
        previous_member_epoch=value.previous_epoch,
        state=value.state,
        assigned_partitions=_with_epochs(value.assigned),
        partitions_pending_revocation=_with_epochs(value.revoking),
    )


def _target_epoch(value: tuple[int, int]) -> Message:
    return ConsumerGroupTargetAssignmentMetadataValue(
        assignment_epoch=value[0], assignment_timestamp=value[1]
    )


def _epoch(value: tuple[int, int]) -> Message:
    return ConsumerGroupMetadataValue(epoch=value[0], metadata_hash=value[1])


def _regex(value: Resolved) -> Message:
    return ConsumerGroupRegularExpressionValue(
        topics=list(value.topics), version=value.version, timestamp=value.timestamp_ms
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

    `key` is the bytes of the key after its type.

    Raises:
        DecodeError: the record is damaged, or its value has a newer version than is supported.
    """
    if key_type == Key.METADATA:
        # Apache Kafka 4.0 stored the topics of a group; its later releases and Penstock have a hash of them.
        return (key_type, ConsumerGroupPartitionMetadataKey.decode(key, 0).group_id, ""), None
    return _RECORDS.read(key_type, key, value)


def _read_member(body: bytes) -> ConsumerSubscription:
    read = member_value.ConsumerGroupMemberMetadataValue.decode(body, VALUE_VERSION)
    classic = read.classic_member_metadata
    if classic is not None and not classic.session_timeout_ms and not classic.supported_protocols:
        classic = None  # the field is missing
    return ConsumerSubscription(
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


def _read_target(body: bytes) -> frozenset[Partition]:
    read = target_value.ConsumerGroupTargetAssignmentMemberValue.decode(body, VALUE_VERSION)
    return frozenset((each.topic_id, index) for each in read.topic_partitions for index in each.partitions)


def _read_current(body: bytes) -> Current:
    read = current_value.ConsumerGroupCurrentMemberAssignmentValue.decode(body, VALUE_VERSION)
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
    """Return a dict from each partition to the epoch at which it was assigned to the member.

    If the record has no such epochs, as in Apache Kafka before 4.3, the member's epoch is used.
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


def _read_regex(body: bytes) -> Resolved:
    read = ConsumerGroupRegularExpressionValue.decode(body, VALUE_VERSION)
    return Resolved(tuple(sorted(read.topics)), read.version, read.timestamp)


def _read_target_epoch(body: bytes) -> tuple[int, int]:
    read = ConsumerGroupTargetAssignmentMetadataValue.decode(body, VALUE_VERSION)
    return read.assignment_epoch, read.assignment_timestamp


def _read_epoch(body: bytes) -> tuple[int, int]:
    read = ConsumerGroupMetadataValue.decode(body, VALUE_VERSION)
    return read.epoch, read.metadata_hash


# --- both ------------------------------------------------------------------------------------------------

_RECORDS = RecordTypes(
    "consumer group",
    RecordType(Key.MEMBER, state.SetSubscription, ConsumerGroupMemberMetadataKey, _member, _read_member),
    RecordType(
        Key.TARGET_MEMBER, state.SetTarget, ConsumerGroupTargetAssignmentMemberKey, _target, _read_target
    ),
    RecordType(
        Key.CURRENT, state.SetCurrent, ConsumerGroupCurrentMemberAssignmentKey, _current, _read_current
    ),
    RecordType(
        Key.REGEX,
        state.SetRegex,
        ConsumerGroupRegularExpressionKey,
        _regex,
        _read_regex,
        "regular_expression",
    ),
    RecordType(Key.GROUP, state.SetEpoch, ConsumerGroupMetadataKey, _epoch, _read_epoch, ""),
    RecordType(
        Key.TARGET,
        state.SetTargetEpoch,
        ConsumerGroupTargetAssignmentMetadataKey,
        _target_epoch,
        _read_target_epoch,
        "",
    ),
)
