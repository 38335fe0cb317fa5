"""Assignors that move as few partitions as possible: sticky and cooperative-sticky (KIP-54, KIP-429).

Both give the same result as the Java client's assignors for the same members (Kafka 3.5 and newer, if no
member has a rack). If all members subscribe to the same topics, each keeps up to a fair share
(`_share_equally`); otherwise `balancing` moves single partitions.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from penstock.client.assignors.balancing import Claims, balance
from penstock.client.assignors.base import Assignment, Assignor, Previous, java_order
from penstock.client.assignors.member_metadata import NO_GENERATION, Subscription, group_by_topic, ungroup
from penstock.common.java_hash import hash_order, string_hash
from penstock.model import TopicPartition

_INT32 = struct.Struct(">i")
_INT16 = struct.Struct(">h")


class StickyAssignor(Assignor):
    """Assigns evenly with few moves. It is eager: members revoke all their partitions in every rebalance."""

    name = "sticky"

    def user_data(self, topics: Sequence[str], previous: Previous) -> bytes | None:
        if previous.partitions is None:
            return None
        return encode_previous(previous.partitions, previous.generation)

    def assign(self, partition_counts: Mapping[str, int], members: Mapping[str, Subscription]) -> Assignment:
        return share(partition_counts, members, {m: _told_in_user_data(s) for m, s in members.items()})[0]


class CooperativeStickyAssignor(Assignor):
    """Assigns evenly, and lets members keep reading the partitions that stay with them in a rebalance.

    A partition that moves is left out of the assignment until its owner has revoked it; the next rebalance,
    which follows at once, gives it to the new owner.
    """

    name = "cooperative-sticky"
    is_cooperative = True

    def user_data(self, topics: Sequence[str], previous: Previous) -> bytes | None:
        return _INT32.pack(previous.generation)

    def assign(self, partition_counts: Mapping[str, int], members: Mapping[str, Subscription]) -> Assignment:
        told = {member: _told_in_fields(subscription) for member, subscription in members.items()}
        assignment, moving = share(partition_counts, members, told)
        if moving is None:
            moving = _moving(assignment, members)
        for tp, member in moving.items():
            assignment[member].remove(tp)
        return assignment


class Told(NamedTuple):
    """The partitions that a member reports to own, and their generation, from its metadata.

    `generation` is None if the metadata lack it.
    """

    partitions: Sequence[TopicPartition]
    generation: int | None


def encode_previous(partitions: Sequence[TopicPartition], generation: int) -> bytes:
    """Return the sticky assignor's user data in version 1: the last assignment and its generation."""
    groups = dict(group_by_topic(partitions))
    pieces = [_INT32.pack(len(groups))]
    # Java groups with computeIfAbsent, which puts what is new first in its bucket.
    for topic in hash_order(reversed(groups), string_hash):
        numbers = groups[topic]
        name = topic.encode()
        pieces += [_INT16.pack(len(name)), name, struct.pack(f">i{len(numbers)}i", len(numbers), *numbers)]
    return b"".join([*pieces, _INT32.pack(generation)])


def decode_previous(data: bytes) -> Told:
    """Return the assignment in the sticky assignor's user data, version 1 or 0 (without a generation).

    Malformed bytes count as no assignment, so that one member cannot stop the group.
    """
    try:
        groups, at = _decode_groups(data)
        generation = _INT32.unpack_from(data, at)[0] if len(data) >= at + 4 else None
    except (struct.error, UnicodeDecodeError, ValueError):
        return Told((), NO_GENERATION)
    return Told(ungroup(groups), generation)


def _decode_groups(data: bytes) -> tuple[list[tuple[str, Sequence[int]]], int]:
    (count,) = _INT32.unpack_from(data, 0)
    at = 4
    groups: list[tuple[str, Sequence[int]]] = []
    for _ in range(count):
        (size,) = _INT16.unpack_from(data, at)
        if size < 0:
            raise ValueError("a topic without a name")
        name = data[at + 2 : at + 2 + size].decode()
        at += 2 + size
        (length,) = _INT32.unpack_from(data, at)
        if not 0 <= length <= len(data):
            raise ValueError(f"a topic has {length} partitions in {len(data)} bytes")
        groups.append((name, struct.unpack_from(f">{length}i", data, at + 4)))
        at += 4 + 4 * length
    return groups, at


def _told_in_user_data(subscription: Subscription) -> Told:
    return decode_previous(subscription.user_data) if subscription.user_data else Told((), None)


def _told_in_fields(subscription: Subscription) -> Told:
    """Return a member's owned partitions and their generation, as the cooperative assignor reads them.

    The generation is a field of the subscription; before version 2, it is in the user data.
    """
    if subscription.generation >= 0:
        return Told(subscription.owned, subscription.generation)
    data = subscription.user_data
    if data is None:
        return Told(subscription.owned, None)
    return Told(subscription.owned, _INT32.unpack_from(data)[0] if len(data) >= 4 else NO_GENERATION)


def share(
    partition_counts: Mapping[str, int], members: Mapping[str, Subscription], told: Mapping[str, Told]
) -> tuple[Assignment, dict[TopicPartition, str] | None]:
    """Return a sticky assignment, and a dict from each partition that changes its owner to its new owner.

    The dict is None if members subscribe to different topics.
    """
    subscribed = {topic for subscription in members.values() for topic in subscription.topics}
    partition_counts = {topic: n for topic, n in partition_counts.items() if topic in subscribed}
    claims = settle_claims(partition_counts, members, told)
    wanted = {frozenset(subscription.topics) for subscription in members.values()}
    if len(wanted) == 1:
        return _share_equally(partition_counts, claims)
    generations = {member: one.generation for member, one in told.items()}
    return balance(partition_counts, members, claims, _outdated(told, generations, members)), None


def settle_claims(
    partition_counts: Mapping[str, int], members: Mapping[str, Subscription], told: Mapping[str, Told]
) -> Claims:
    """Return the current owner of each partition, from the partitions that members claim to own.

    The claim of the newest generation counts. If two members claim a partition in the same generation,
    neither owns it.
    """
    owned: dict[str, list[TopicPartition]] = {}
    owner_of: dict[TopicPartition, str] = {}
    disputed: set[TopicPartition] = set()
    for member in hash_order(members, string_hash):
        partitions, generation = told[member]
        since = NO_GENERATION if generation is None else generation
        mine = owned[member] = []
        for tp in partitions:
            if tp.topic not in partition_counts or tp.partition >= partition_counts[tp.topic]:
                continue
            other = owner_of.get(tp)
            if other is None:
                mine.append(tp)
                owner_of[tp] = member
                continue
            if since < members[other].generation:
                continue
            if tp in owned[other]:
                owned[other].remove(tp)
            if since > members[other].generation:
                mine.append(tp)
            else:
                disputed.add(tp)
            owner_of[tp] = member
    return Claims(owned, disputed)


def _outdated(
    told: Mapping[str, Told], generations: Mapping[str, int | None], members: Mapping[str, Subscription]
) -> dict[TopicPartition, str]:
    """Return a dict from partition to its last owner in a generation before the newest one."""
    newest = max((g for g in generations.values() if g is not None), default=NO_GENERATION)
    newest = max(newest, NO_GENERATION)
    found: dict[TopicPartition, tuple[str, int]] = {}
    for member in hash_order(members, string_hash):
        generation = generations[member]
        if generation is None:
            if newest == NO_GENERATION:
                continue
            generation = NO_GENERATION
        elif generation >= newest:
            continue
        for tp in told[member].partitions:
            if tp not in found or generation > found[tp][1]:
                found[tp] = (member, generation)
    return {tp: member for tp, (member, _) in found.items()}


def _share_equally(
    partition_counts: Mapping[str, int], claims: Claims
) -> tuple[Assignment, dict[TopicPartition, str]]:
    """Let each member keep partitions up to a fair share; assign the others to members with the fewest.

    Returns the assignment, and a dict from each partition that changes its owner to its new owner.
    """
    total = sum(partition_counts.values())
    small, over_wanted = divmod(total, len(claims.owned))
    large = small + (over_wanted > 0)
    assignment: Assignment = {}
    released: dict[TopicPartition, str] = {}
    hungry: list[str] = []
    content: list[str] = []
    """Members that keep `small` partitions, the fair share rounded down, and may get one more partition."""
    over = 0
    for member, owned in claims.owned.items():
        mine = sorted(set(owned) - claims.disputed, key=lambda p: (p.partition, java_order(p.topic)))
        if len(mine) < small:
            kept = len(mine)
            hungry.append(member)
        elif len(mine) >= large and over < over_wanted:
            kept = large
            over += 1
            if over == over_wanted:
                content.clear()
        else:
            kept = small
            if over < over_wanted:
                content.append(member)
        assignment[member] = mine[:kept]
        released.update(dict.fromkeys(mine[kept:], member))
    return assignment, _deal(partition_counts, claims, assignment, released, hungry, content, small)


def _deal(
    partition_counts: Mapping[str, int],
    claims: Claims,
    assignment: Assignment,
    released: Mapping[TopicPartition, str],
    hungry: Sequence[str],
    content: Sequence[str],
    small: int,
) -> dict[TopicPartition, str]:
    """Assign the partitions that no member keeps to the members with too few, in turn.

    Returns a dict from each partition that had another owner to its new owner.
    """
    circle = deque(sorted(hungry, key=java_order))
    next_in_line = deque(sorted(content, key=java_order))
    taken = {tp for mine in assignment.values() for tp in mine}
    moving: dict[TopicPartition, str] = {}
    for topic in sorted(partition_counts, key=java_order):
        for number in range(partition_counts[topic]):
            tp = TopicPartition(topic, number)
            if tp in taken:
                continue
            member = circle.popleft() if circle else next_in_line.popleft()
            mine = assignment[member]
            mine.append(tp)
            if len(mine) < small:
                circle.append(member)
            elif len(mine) == small:
                next_in_line.append(member)
            if released.get(tp, member) != member or tp in claims.disputed:
                moving[tp] = member
    return moving


def _moving(assignment: Assignment, members: Mapping[str, Subscription]) -> dict[TopicPartition, str]:
    """Return the partitions that another member must revoke before their new owner gets them.

    The result is a dict from partition to new owner.
    """
    added: dict[TopicPartition, str] = {}
    revoked: set[TopicPartition] = set()
    for member, partitions in assignment.items():
        owned = set(members[member].owned)
        added.update(dict.fromkeys((tp for tp in partitions if tp not in owned), member))
        revoked |= owned.difference(partitions)
    return {tp: member for tp, member in added.items() if tp in revoked}
