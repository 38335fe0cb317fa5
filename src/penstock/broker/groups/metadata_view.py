"""The metadata of topics that groups use: topic ids, partition counts, and a hash of ids and counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sized
from typing import Protocol, TypeAlias

Partition: TypeAlias = tuple[bytes, int]
"""A partition as a pair: topic id and partition index."""


class TopicView(Protocol):
    """The metadata of one topic that group coordinators use."""

    @property
    def id(self) -> bytes: ...
    @property
    def partitions(self) -> Sized: ...


class TopicsView(Protocol):
    """The interface to the topics of the cluster. `version` grows with every change of metadata."""

    @property
    def topics(self) -> Mapping[str, TopicView]: ...
    @property
    def version(self) -> int: ...


def ids_of(names: Iterable[str], topics: Mapping[str, TopicView]) -> frozenset[bytes]:
    """Return the ids of the named topics, without those that do not exist."""
    return frozenset(topics[name].id for name in names if name in topics)


def counts_of(names: Iterable[str], topics: Mapping[str, TopicView]) -> dict[bytes, int]:
    """Return a dict from topic id to partition count for the existing topics, in the order of their names."""
    return {topics[name].id: len(topics[name].partitions) for name in sorted(names) if name in topics}


def hash_of(names: Iterable[str], topics: Mapping[str, TopicView]) -> int:
    """Return a signed 64-bit hash of the ids and partition counts of topics; 0 if there are none.

    Apache Kafka uses another hash function (XXH3). A group that moves between Kafka and Penstock therefore
    gets one additional assignment.
    """
    counts = counts_of(names, topics)
    if not counts:
        return 0
    from hashlib import blake2b  # the broker may run without ever having such a group

    text = b"".join(topic_id + count.to_bytes(4, "big") for topic_id, count in counts.items())
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big", signed=True)


def by_topic(partitions: Iterable[Partition]) -> dict[bytes, list[int]]:
    """Return a dict from topic id to its partition indices, with topic ids and indices in ascending order."""
    found: dict[bytes, list[int]] = {}
    for topic, index in sorted(partitions):
        found.setdefault(topic, []).append(index)
    return found
