"""The members of one classic group, the protocols that they share, and their waiting requests.

A `Roster` has no state machine, no clock and no responses; `group.ClassicGroup` has these.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.broker.groups.classic.member import (
    Member,
    Tally,
    Ticket,
    protocols_of,
    size_of_protocols,
    topics_of_subscription,
    vote,
)


class Roster:
    """The members of a group by id and instance id, with counts of protocols and waiting requests."""

    def __init__(self, tally: Tally) -> None:
        """Make an empty roster; `tally` counts the memory of its members."""
        self.leader_id: str | None = None
        self.members: dict[str, Member] = {}
        self.instances: dict[str, str] = {}
        """A dict from the instance id of each static member to its member id."""
        self.waiting_to_join = 0
        """The number of members with a waiting JoinGroup request."""
        self.to_sync: set[str] = set()
        """The ids of members that have not sent SyncGroup in this generation."""
        self._tally = tally
        self._supported: dict[str, int] = {}
        """A dict from each protocol's name to the number of members that support it."""

    def enrol(self, member: Member) -> None:
        """Add a member, replacing a member with the same id: a stored group may contain a member twice."""
        older = self.members.get(member.id)
        if older is not None:
            self.remove(older)
        self.members[member.id] = member
        member.join_tally(self._tally)
        if member.instance_id is not None:
            self.instances[member.instance_id] = member.id
        self._count(member, 1)

    def remove(self, member: Member) -> None:
        """Remove a member. The caller must have answered its waiting requests."""
        del self.members[member.id]
        member.session.end()
        member.leave_tally()
        self._count(member, -1)
        if member.join_ticket is not None:
            member.join_ticket = None
            self.waiting_to_join -= 1
        if member.instance_id is not None and self.instances.get(member.instance_id) == member.id:
            del self.instances[member.instance_id]
        self.to_sync.discard(member.id)
        if self.leader_id == member.id:
            self.leader_id = next(iter(self.members), None)

    def _count(self, member: Member, step: int) -> None:
        for name, _ in member.protocols:
            count = self._supported.get(name, 0) + step
            if count:
                self._supported[name] = count
            else:
                self._supported.pop(name, None)

    def has_in_common(self, protocol: str) -> bool:
        """Return True if every member supports the given protocol."""
        return self._supported.get(protocol, 0) == len(self.members)

    def vote(self) -> str:
        """Return the protocol that most members prefer, among those that all members support.

        Raises:
            ValueError: no protocol is supported by all members.
        """
        members = self.members
        leader = members.get(self.leader_id or "") or next(iter(members.values()))
        return vote(members.values(), self._supported, len(members), leader)

    def elect(self) -> bool:
        """Choose a leader from the members that have joined; return False if no member has joined."""
        leader = self.members.get(self.leader_id or "")
        if leader is not None and leader.join_ticket is not None:
            return True
        joined = next((member for member in self.members.values() if member.join_ticket is not None), None)
        if joined is not None:
            self.leader_id = joined.id
        return joined is not None

    def wait_to_join(self, member: Member, ticket: Ticket) -> Ticket | None:
        """Let a member's JoinGroup wait; return the ticket of the member's older JoinGroup, or None."""
        older, member.join_ticket = member.join_ticket, ticket
        if older is None:
            self.waiting_to_join += 1
        return older

    def stop_waiting(self, member: Member) -> None:
        """Remove the waiting JoinGroup of a member, which is about to be answered."""
        if member.join_ticket is not None:
            member.join_ticket = None
            self.waiting_to_join -= 1

    def change_protocols(self, member: Member, pairs: Sequence[tuple[str, bytes]]) -> None:
        """Replace the protocols of a member, each with its metadata."""
        self._count(member, -1)
        before = size_of_protocols(member.protocols)
        member.protocols = protocols_of(pairs)
        self._tally.size_bytes += size_of_protocols(member.protocols) - before
        self._count(member, 1)

    def recompute(self) -> None:
        """Recompute the instance ids, counts and sets that are derived from the members."""
        self.instances = {
            one.instance_id: one.id for one in self.members.values() if one.instance_id is not None
        }
        self._supported.clear()
        for member in self.members.values():
            self._count(member, 1)
        self.waiting_to_join = sum(1 for one in self.members.values() if one.join_ticket is not None)
        if self.leader_id not in self.members:
            self.leader_id = next(iter(self.members), None)

    def clear(self) -> list[Member]:
        """Remove and return all members, resetting the counts without reading the members' protocols."""
        members = list(self.members.values())
        self.members, self.instances = {}, {}
        self._supported, self.to_sync = {}, set()
        self.waiting_to_join = 0
        self.leader_id = None
        for member in members:
            member.leave_tally()
            member.session.end()
        return members

    @property
    def size_bytes(self) -> int:
        """Return the approximate memory, in bytes, that the members use."""
        return sum(member.size_bytes for member in self.members.values())

    def subscribed_topics(self, protocol: str | None) -> set[str] | None:
        """Return the topics that the members subscribe to, or None if a subscription cannot be read."""
        topics: set[str] = set()
        for member in self.members.values():
            subscription = topics_of_subscription(member.metadata(protocol))
            if subscription is None:
                return None
            topics.update(subscription)
        return topics
