"""The assignors of the broker, `uniform` and `range`, which compute the target assignment of a group.

They are pure functions of the topics and of the members, with their subscriptions and former assignments.
Like those of Apache Kafka 4.3, they ignore the racks of members, although the racks are stored and described.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from penstock.broker.groups.consumer.state import Partition
from penstock.broker.groups.settings import RANGE, UNIFORM

BALANCING_PASSES = 16
"""The maximum number of passes over all topics in which the assignor `uniform` moves partitions between
members with different subscriptions.
"""


class Subscriber(NamedTuple):
    """One member as input of assignors: the ids of its topics, its former partitions, and its instance id."""

    topics: frozenset[bytes]
    had: frozenset[Partition]
    instance_id: str | None = None


Assignment = dict[str, frozenset[Partition]]


def assign(name: str, members: Mapping[str, Subscriber], counts: Mapping[bytes, int]) -> Assignment:
    """Return the target assignment of every member, computed with the assignor `name`.

    `counts` has the number of partitions of each topic, in the order in which topics are assigned. Topics
    that are not in `counts` are ignored.
    """
    return _ASSIGNORS[name](members, counts)


def _range(members: Mapping[str, Subscriber], counts: Mapping[bytes, int]) -> Assignment:
    """Assign consecutive partitions of each topic to members; the first members get one more if needed."""
    dynamic = [(1, member_id, member_id) for member_id, each in members.items() if each.instance_id is None]
    static = [
        (0, each.instance_id, member_id)
        for member_id, each in members.items()
        if each.instance_id is not None
    ]
    order = [member_id for _, _, member_id in sorted(static + dynamic)]
    found: dict[str, list[Partition]] = {member_id: [] for member_id in order}
    for topic, count in counts.items():
        subscribers = [member_id for member_id in order if topic in members[member_id].topics]
        if not subscribers:
            continue
        quota, extras = divmod(count, len(subscribers))
        start = 0
        for number, member_id in enumerate(subscribers):
            size = quota + (number < extras)
            found[member_id] += [(topic, index) for index in range(start, start + size)]
            start += size
    return {member_id: frozenset(partitions) for member_id, partitions in found.items()}


def _uniform(members: Mapping[str, Subscriber], counts: Mapping[bytes, int]) -> Assignment:
    """Assign equally many partitions to all members, keeping as many former assignments as possible."""
    if not members:
        return {}
    subscriptions = {each.topics for each in members.values()}
    if len(subscriptions) == 1:
        return _uniform_equal(members, counts)
    return _uniform_mixed(members, counts)


def _partitions(counts: Mapping[bytes, int], topics: Iterable[bytes]) -> list[Partition]:
    return [(topic, index) for topic in topics for index in range(counts[topic])]


def _uniform_equal(members: Mapping[str, Subscriber], counts: Mapping[bytes, int]) -> Assignment:
    subscribed = next(iter(members.values())).topics
    everything = _partitions(counts, (topic for topic in counts if topic in subscribed))
    quota, extras = divmod(len(everything), len(members))
    left = dict.fromkeys(everything)
    surplus: list[Partition] = []
    found: dict[str, list[Partition]] = {}
    for member_id, member in members.items():
        valid = sorted(partition for partition in member.had if partition in left)
        size = min(len(valid), quota)
        if len(valid) > quota and extras:
            size += 1
            extras -= 1
        found[member_id] = valid[:size]
        surplus += valid[size:]
        for partition in valid:
            del left[partition]
    free = [*reversed(surplus), *reversed(left)]
    for partitions in found.values():
        wanted = quota - len(partitions)
        if wanted >= 0 and extras:
            wanted += 1
            extras -= 1
        for _ in range(wanted):
            partitions.append(free.pop())
    return {member_id: frozenset(partitions) for member_id, partitions in found.items()}


def _uniform_mixed(members: Mapping[str, Subscriber], counts: Mapping[bytes, int]) -> Assignment:
    subscribers: dict[bytes, list[str]] = {
        topic: [member_id for member_id, member in members.items() if topic in member.topics]
        for topic in counts
    }
    found: dict[str, set[Partition]] = {member_id: set() for member_id in members}
    holders: dict[Partition, str] = {}
    for member_id, member in members.items():
        for topic, index in sorted(member.had):
            partition = topic, index
            if topic in member.topics and index < counts.get(topic, 0) and partition not in holders:
                holders[partition] = member_id
                found[member_id].add(partition)
    order = sorted(
        (topic for topic in counts if subscribers[topic]),
        key=lambda topic: (-counts[topic] / len(subscribers[topic]), len(subscribers[topic]), topic),
    )
    for partition in _partitions(counts, order):
        if partition not in holders:
            least = min(subscribers[partition[0]], key=lambda member_id: len(found[member_id]))
            holders[partition] = least
            found[least].add(partition)
    _balance(found, holders, subscribers, order, counts)
    return {member_id: frozenset(partitions) for member_id, partitions in found.items()}


def _balance(
    found: Mapping[str, set[Partition]],
    holders: dict[Partition, str],
    subscribers: Mapping[bytes, Sequence[str]],
    order: Sequence[bytes],
    counts: Mapping[bytes, int],
) -> None:
    """Move partitions of each topic from its subscribers with more to those with fewer."""
    for _ in range(BALANCING_PASSES):
        has_moved = False
        for topic in order:
            candidates = subscribers[topic]
            loads = [len(found[member_id]) for member_id in candidates]
            if max(loads) - min(loads) <= 1:
                continue
            for index in range(counts[topic]):
                partition = topic, index
                holder = holders[partition]
                least = min(candidates, key=lambda member_id: len(found[member_id]))
                if len(found[holder]) > len(found[least]) + 1:
                    found[holder].discard(partition)
                    found[least].add(partition)
                    holders[partition] = least
                    has_moved = True
        if not has_moved:
            return


_ASSIGNORS = {UNIFORM: _uniform, RANGE: _range}
