"""The sticky assignment for members that subscribe to different topics (KIP-54): even, with few moves.

Each member keeps its partitions where possible; each unowned partition goes to the subscriber with the fewest
partitions. Then single partitions move to members that have at least two partitions fewer, until no move
makes the assignment more even. If all moves together have not made the assignment more even, they are undone.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from penstock.client.assignors.base import Assignment, java_order
from penstock.client.assignors.member_metadata import Subscription
from penstock.common.java_hash import hash_order, partition_hash
from penstock.model import TopicPartition


class Claims(NamedTuple):
    """The partitions each member owned before the rebalance, and those that several members claim to own."""

    owned: dict[str, list[TopicPartition]]
    disputed: set[TopicPartition]


def balance(
    partition_counts: Mapping[str, int],
    members: Mapping[str, Subscription],
    claims: Claims,
    outdated: Mapping[TopicPartition, str],
) -> Assignment:
    """Return an even assignment. `outdated` maps partitions to their owners in earlier generations.

    A partition that must move goes back to its earlier owner if possible.
    """
    return _Balancing(partition_counts, members, claims, outdated).run()


class _Balancing:
    """The state of one run of `balance`: the assignment so far, and members in order of partition count."""

    def __init__(
        self,
        partition_counts: Mapping[str, int],
        members: Mapping[str, Subscription],
        claims: Claims,
        outdated: Mapping[TopicPartition, str],
    ) -> None:
        self._counts = partition_counts
        self._outdated = outdated
        self._wants = {
            member: [topic for topic in members[member].topics if topic in partition_counts]
            for member in claims.owned
        }
        self._takers: dict[str, list[str]] = {topic: [] for topic in partition_counts}
        for member, topics in self._wants.items():
            for topic in topics:
                self._takers[topic].append(member)
        self._held: Assignment = {}
        self._owner: dict[TopicPartition, str] = {}
        self._must_revoke = False
        for member, owned in claims.owned.items():
            self._held[member] = [tp for tp in owned if tp.topic in self._wants[member]]
            self._owner.update(dict.fromkeys(owned, member))
            self._must_revoke |= len(self._held[member]) < len(owned)
        self._by_size: list[tuple[int, bytes, str]] = sorted(map(self._rank, self._held))
        self._moves = _Moves()

    def run(self) -> Assignment:
        everything = self._all_partitions()
        kept = {tp for held in self._held.values() for tp in held}
        loose = [tp for tp in everything if tp not in kept]
        is_new = not self._held[self._by_size[-1][2]]
        for tp in loose:
            self._give_to_neediest(tp)
        fixed = self._set_aside_fixed()
        everything = [tp for tp in everything if len(self._takers[tp.topic]) >= 2]
        loose = [tp for tp in loose if len(self._takers[tp.topic]) >= 2]
        before = {member: list(held) for member, held in self._held.items()}
        if not self._must_revoke:
            self._improve(loose)
        has_moved = self._improve(everything)
        result = self._held
        if not is_new and has_moved and _unevenness(self._held) >= _unevenness(before):
            result = before
        return {**result, **fixed}

    def _all_partitions(self) -> list[TopicPartition]:
        """Return all partitions, beginning with those of topics that have the fewest subscribers."""
        topics = sorted(self._counts, key=lambda topic: (len(self._takers[topic]), java_order(topic)))
        return [TopicPartition(topic, number) for topic in topics for number in range(self._counts[topic])]

    # -- the order of members

    def _rank(self, member: str) -> tuple[int, bytes, str]:
        return len(self._held[member]), java_order(member), member

    def _unlist(self, member: str) -> None:
        del self._by_size[bisect_left(self._by_size, self._rank(member))]

    def _neediest(self, topic: str) -> str | None:
        """Return the subscriber of a topic that has the fewest partitions so far, or None."""
        for _, _, member in self._by_size:
            if topic in self._wants[member]:
                return member
        return None

    def _give_to_neediest(self, tp: TopicPartition) -> None:
        member = self._neediest(tp.topic)
        if member is None:
            return
        self._unlist(member)
        self._held[member].append(tp)
        self._owner[tp] = member
        insort(self._by_size, self._rank(member))

    # -- what cannot move

    def _room(self, member: str) -> int:
        """Return the maximum number of partitions that a member could have: all those of its topics."""
        return sum(self._counts[topic] for topic in self._wants[member])

    def _set_aside_fixed(self) -> Assignment:
        """Remove members whose assignment cannot change, and return their assignments.

        Such a member has every partition of its topics, and no other member subscribes to these topics.
        """
        fixed: Assignment = {}
        for member in list(self._held):
            held = self._held[member]
            if len(held) < self._room(member) or any(len(self._takers[w.topic]) >= 2 for w in held):
                continue
            self._unlist(member)
            fixed[member] = self._held.pop(member)
        return fixed

    # -- improvements

    def _is_balanced(self) -> bool:
        """Return True if no member could take a partition from a member that has at least two more."""
        if self._by_size[0][0] >= self._by_size[-1][0] - 1:
            return True
        largest = self._largest_by_topic()
        for size, _, member in self._by_size:
            if size < self._room(member) and any(largest[t] > size + 1 for t in self._wants[member]):
                return False
        return True

    def _largest_by_topic(self) -> dict[str, int]:
        """Return, for each topic, the largest number of partitions that any owner of its partitions has."""
        largest = dict.fromkeys(self._counts, 0)
        for held in self._held.values():
            for topic in {tp.topic for tp in held}:
                largest[topic] = max(largest[topic], len(held))
        return largest

    def _improve(self, candidates: Sequence[TopicPartition]) -> bool:
        has_moved = False
        is_moving = True
        while is_moving:
            is_moving = False
            for tp in candidates:
                if self._is_balanced():
                    break
                size = len(self._held[self._owner[tp]])
                earlier = self._outdated.get(tp)
                if earlier in self._held and size > len(self._held[earlier]) + 1:
                    self._move(tp, earlier)
                elif any(size > len(self._held[m]) + 1 for m in self._takers[tp.topic] if m in self._held):
                    self._move(tp, self._neediest(tp.topic))
                else:
                    continue
                has_moved = is_moving = True
        return has_moved

    def _move(self, tp: TopicPartition, target: str | None) -> None:
        assert target is not None
        tp = self._moves.better_choice(tp, self._owner[tp], target)
        source = self._owner[tp]
        self._unlist(source)
        if target != source:
            self._unlist(target)
        self._moves.note(tp, source, target)
        self._held[source].remove(tp)
        self._held[target].append(tp)
        self._owner[tp] = target
        insort(self._by_size, self._rank(target))
        if target != source:
            insort(self._by_size, self._rank(source))


class _Moves:
    """Records the moves so far, so that two members do not swap partitions of one topic to no effect."""

    def __init__(self) -> None:
        self._pairs: dict[TopicPartition, tuple[str, str]] = {}
        self._moved: dict[tuple[str, str, str], list[TopicPartition]] = {}

    def better_choice(self, tp: TopicPartition, source: str, target: str) -> TopicPartition:
        """Return the partition to move from `source` to `target`: `tp`, or another one of its topic.

        If a partition of the topic has moved from `target` to `source` before, that partition goes back
        instead.
        """
        if tp in self._pairs:
            source = self._pairs[tp][0]
        came_back = self._moved.get((tp.topic, target, source))
        return hash_order(came_back, lambda each: partition_hash(*each))[0] if came_back else tp

    def note(self, tp: TopicPartition, source: str, target: str) -> None:
        earlier = self._pairs.pop(tp, None)
        if earlier is not None:
            self._moved[tp.topic, *earlier].remove(tp)
            source = earlier[0]
            if source == target:
                return
        self._pairs[tp] = (source, target)
        self._moved.setdefault((tp.topic, source, target), []).append(tp)


def _unevenness(held: Mapping[str, Sequence[TopicPartition]]) -> int:
    """Return the sum of the differences between the numbers of partitions of every two members."""
    sizes = sorted(map(len, held.values()))
    return sum(size * (2 * index - len(sizes) + 1) for index, size in enumerate(sizes))
