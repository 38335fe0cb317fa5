"""Reads and writes the subscriptions and assignments of classic consumers in consumer groups.

The bytes are an int16 version, then a ConsumerProtocolSubscription or a ConsumerProtocolAssignment. Versions
above 3 begin like version 3. These bytes contain topic names, whereas consumer groups use topic ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar

from penstock.broker.groups.consumer.state import Partition
from penstock.broker.groups.metadata_view import TopicView, by_topic
from penstock.errors import DecodeError
from penstock.protocol.message import Message
from penstock.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment, TopicPartition
from penstock.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription

PROTOCOL_TYPE = "consumer"

NEWEST_VERSION = 3

M = TypeVar("M", bound=Message)


class ClassicSubscription(NamedTuple):
    """The subscription in a classic JoinGroup: its topics, owned partitions, generation and rack."""

    topics: tuple[str, ...]
    owned: frozenset[Partition]
    generation: int
    rack_id: str | None


def version_of(data: bytes) -> int:
    """Return the lower of the version with which metadata begins and the newest supported version.

    Raises:
        DecodeError: the metadata has fewer than two bytes, or the version is negative.
    """
    version = int.from_bytes(data[:2], "big", signed=True)
    if len(data) < 2 or version < 0:
        raise DecodeError("the metadata of a consumer do not begin with a version")
    return min(version, NEWEST_VERSION)


def read_subscription(data: bytes, topics: Mapping[str, TopicView]) -> ClassicSubscription:
    """Decode a subscription, without partitions of topics that do not exist.

    Raises:
        DecodeError: the bytes are not a subscription.
    """
    read = _read(ConsumerProtocolSubscription, data)
    owned = frozenset(
        (topics[each.topic].id, index)
        for each in read.owned_partitions
        if each.topic in topics
        for index in each.partitions
    )
    return ClassicSubscription(tuple(read.topics), owned, read.generation_id, read.rack_id)


def read_assignment(data: bytes, topics: Mapping[str, TopicView]) -> frozenset[Partition]:
    """Decode the assignment of a classic group's leader; empty bytes are an empty assignment.

    Partitions of topics that do not exist are left out.

    Raises:
        DecodeError: the bytes are not an assignment.
        ValueError: the assignment has user data of a client-side assignor, which would be lost.
    """
    if not data:
        return frozenset()
    read = _read(ConsumerProtocolAssignment, data)
    if read.user_data:
        raise ValueError("an assignor of the members' own keeps data in assignments")
    return frozenset(
        (topics[each.topic].id, index)
        for each in read.assigned_partitions
        if each.topic in topics
        for index in each.partitions
    )


def write_assignment(
    partitions: Iterable[Partition], names: Mapping[bytes, str], subscription: bytes
) -> bytes:
    """Encode the assignment of a classic consumer, in the version of its subscription.

    `names` has the names of topics by id; partitions of other topics are left out.

    Raises:
        DecodeError: the subscription does not begin with a version.
    """
    version = version_of(subscription)
    assigned = [
        TopicPartition(topic=names[topic_id], partitions=indexes)
        for topic_id, indexes in by_topic(partitions).items()
        if topic_id in names
    ]
    message = ConsumerProtocolAssignment(assigned_partitions=assigned, user_data=None)
    return version.to_bytes(2, "big") + message.encode(version)


def _read(kind: type[M], data: bytes) -> M:
    version = version_of(data)
    return kind.decode(memoryview(data)[2:], version)
