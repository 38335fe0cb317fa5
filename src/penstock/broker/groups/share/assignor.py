"""The assignor of share groups, `simple`, which may assign one partition to several members (KIP-932).

The assignment is a pure function of the members, with their subscriptions and former assignments, and of the
partitions.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from penstock.broker.groups.metadata_view import Partition


class Subscriber(NamedTuple):
    """One member as input of the assignor: the ids of its topics, and its former partitions."""

    topics: frozenset[bytes]
    had: frozenset[Partition]


Assignment = dict[str, frozenset[Partition]]


def assign(members: Mapping[str, Subscriber], partitions: Mapping[bytes, Iterable[int]]) -> Assignment:
    """Return the target assignment of every member.

    `partitions` are the assignable partitions, by topic id. Each topic's partitions are distributed
    separately or, if all subscriptions are equal, the partitions of all topics together. In each distribution
    every partition gets at least one of its subscribers, and every subscriber at least one partition. The
    numbers of members per partition differ by at most one, and so do the numbers of partitions per member.
    """
    everything = {topic: [(topic, index) for index in sorted(found)] for topic, found in partitions.items()}
    found: dict[str, set[Partition]] = {member_id: set() for member_id in members}
    subscriptions = {each.topics for each in members.values()}
    if len(subscriptions) == 1:
        subscribed = next(iter(subscriptions))
        wanted = [each for topic, listed in everything.items() if topic in subscribed for each in listed]
        _share_out(list(members), members, wanted, found)
    else:
        for topic, listed in everything.items():
            order = [member_id for member_id, each in members.items() if topic in each.topics]
            _share_out(order, members, listed, found)
    return {member_id: frozenset(each) for member_id, each in found.items()}


def _share_out(
    order: Sequence[str],
    members: Mapping[str, Subscriber],
    partitions: Sequence[Partition],
    found: Mapping[str, set[Partition]],
) -> None:
    """Distribute partitions evenly among members, in this order, keeping former assignments if possible."""
    if not order or not partitions:
        return
    sharing = -(-len(order) // len(partitions))
    slots = sharing * len(partitions)
    holders: dict[Partition, dict[str, None]] = {partition: {} for partition in partitions}
    held: dict[str, dict[Partition, None]] = {member_id: {} for member_id in order}
    short: deque[str] = deque()
    given = 0
    for number, member_id in enumerate(order):
        before, given = given, -(-slots * (number + 1) // len(order))
        wish, kept = given - before, held[member_id]
        for partition in sorted(members[member_id].had & holders.keys()):
            if len(kept) < wish and len(holders[partition]) < sharing:
                kept[partition] = None
                holders[partition][member_id] = None
        found[member_id].update(kept)
        short.extend([member_id] * (wish - len(kept)))
    for partition in partitions:
        while len(holders[partition]) < sharing:
            _fill(partition, short, holders, held, found)


def _fill(
    partition: Partition,
    short: deque[str],
    holders: Mapping[Partition, dict[str, None]],
    held: Mapping[str, dict[Partition, None]],
    found: Mapping[str, set[Partition]],
) -> None:
    """Assign a partition to the first suitable member of `short`, the members that need more partitions."""

    def give(given: Partition, member_id: str) -> None:
        holders[given][member_id] = None
        held[member_id][given] = None
        found[member_id].add(given)

    for _ in range(len(short)):
        member_id = short.popleft()
        if member_id not in holders[partition]:
            give(partition, member_id)
            return
        short.append(member_id)
    # Every member that has too few has this partition. One of them takes another partition, whose holder
    # takes this one: of the holders of any full partition at least one does not have a partition that is
    # not full.
    member_id = short.popleft()
    other = next(each for each, those in holders.items() if member_id not in those)
    giver = next((each for each in holders[other] if each not in holders[partition]), None)
    if giver is not None:
        del holders[other][giver], held[giver][other]
        found[giver].discard(other)
        give(partition, giver)
    give(other, member_id)
