"""The metadata of group members: subscriptions and assignments, exchanged through the coordinator.

The messages are Kafka's ConsumerProtocolSubscription and ConsumerProtocolAssignment, versions 0 to 3. An
int16 version precedes each. A reader skips the fields of versions that are newer than its own.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from penstock.errors import DecodeError
from penstock.model import TopicPartition
from penstock.protocol.message import Message
from penstock.protocol.messages import consumer_protocol_assignment, consumer_protocol_subscription
from penstock.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from penstock.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription

M = TypeVar("M", bound=Message)

PROTOCOL_TYPE = "consumer"
NO_GENERATION = -1
VERSION = 3
"""The version in which subscriptions and assignments are encoded. Members that use an older version skip the
fields that this older version does not have.
"""

_VERSION = struct.Struct(">h")


@dataclass(frozen=True, slots=True)
class Subscription:
    """A member's topics and its current partitions. `generation` is -1 if the member sends none."""

    topics: tuple[str, ...]
    owned: tuple[TopicPartition, ...] = ()
    user_data: bytes | None = None
    generation: int = NO_GENERATION
    rack: str | None = None
    instance_id: str | None = None
    """The ``group.instance.id``, as the coordinator reports it."""


def encode_subscription(subscription: Subscription, version: int = VERSION) -> bytes:
    """Return an encoded subscription, sorted by topic and partition as Java's consumer encodes it."""
    groups = group_by_topic(sorted(subscription.owned)) if version >= 1 else []
    message = ConsumerProtocolSubscription(
        topics=sorted(subscription.topics),
        user_data=subscription.user_data,
        owned_partitions=[
            consumer_protocol_subscription.TopicPartition(topic=topic, partitions=numbers)
            for topic, numbers in groups
        ],
        generation_id=subscription.generation if version >= 2 else NO_GENERATION,
        rack_id=subscription.rack if version >= 3 else None,
    )
    return _VERSION.pack(version) + message.encode(version)


def decode_subscription(data: bytes, instance_id: str | None = None) -> Subscription:
    """Return the subscription in `data`, which may have any version.

    Raises:
        DecodeError: the bytes are not a subscription.
    """
    message = _decode(ConsumerProtocolSubscription, data)
    owned = [TopicPartition(o.topic, number) for o in message.owned_partitions for number in o.partitions]
    return Subscription(
        tuple(message.topics),
        tuple(owned),
        message.user_data,
        message.generation_id,
        message.rack_id,
        instance_id,
    )


def encode_assignment(
    partitions: Iterable[TopicPartition], user_data: bytes | None = None, version: int = VERSION
) -> bytes:
    """Return an encoded assignment, as Java's consumer encodes it."""
    message = ConsumerProtocolAssignment(
        assigned_partitions=[
            consumer_protocol_assignment.TopicPartition(topic=topic, partitions=numbers)
            for topic, numbers in group_by_topic(partitions)
        ],
        user_data=user_data,
    )
    return _VERSION.pack(version) + message.encode(version)


def decode_assignment(data: bytes) -> list[TopicPartition]:
    """Return the partitions of an assignment of any version. Empty `data` means no partitions.

    Raises:
        DecodeError: the bytes are not an assignment.
    """
    if not data:
        return []
    message = _decode(ConsumerProtocolAssignment, data)
    return [TopicPartition(a.topic, number) for a in message.assigned_partitions for number in a.partitions]


def _decode(message_class: type[M], data: bytes) -> M:
    if len(data) < _VERSION.size:
        raise DecodeError(f"{len(data)} bytes are no {message_class.NAME}")
    (version,) = _VERSION.unpack_from(data)
    if version < 0:
        raise DecodeError(f"version {version} of {message_class.NAME}")
    return message_class.decode(memoryview(data)[_VERSION.size :], min(version, VERSION))


def group_by_topic(partitions: Iterable[TopicPartition]) -> list[tuple[str, list[int]]]:
    """Return a dict from topic to partition numbers. Topics and numbers keep the order of the input."""
    groups: dict[str, list[int]] = {}
    for topic, number in partitions:
        groups.setdefault(topic, []).append(number)
    return list(groups.items())


def ungroup(groups: Iterable[tuple[str, Sequence[int]]]) -> list[TopicPartition]:
    """Return all partitions of a list of topics with partition numbers: the reverse of `group_by_topic`."""
    return [TopicPartition(topic, number) for topic, numbers in groups for number in numbers]
