"""The members of one classic group: who is in, which protocols they share, which requests wait.

`Roster` is the part of a group that has no states. `group.Group` adds them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from penstock.broker.groups.classic.member import (
    Caller,
    Member,
    Ticket,
    protocols_of,
    size_of_protocols,
    topics_of_subscription,
    vote,
)
from penstock.broker.groups.timers import Timer, Timers
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.join_group_response import JoinGroupResponse, JoinGroupResponseMember
from penstock.protocol.messages.sync_group_response import SyncGroupResponse

if TYPE_CHECKING:
    from penstock.broker.groups.classic.outbox import Outbox
    from penstock.protocol.messages.join_group_request import JoinGroupRequest

CONSUMER = "consumer"
"""The protocol type whose metadata are subscriptions."""

SKIPPED_ASSIGNMENT_SINCE = 9
"""The version of JoinGroup since which a response can ask the leader not to assign (KIP-814)."""

_NONE = ErrorCode.NONE


class Roster(ABC):
    """The members, by id and by instance id, and the requests of theirs that wait."""

    def __init__(
        self,
        group_id: str,
        timers: Timers,
        outbox: Outbox[Any],
        timer_failed: Callable[[float], None] | None,
    ) -> None:
        """`timer_failed`, if there is one, is called inside the ``except`` block of a timer that raised."""
        self.id = group_id
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader_id: str | None = None
        self.members: dict[str, Member] = {}
        self.instances: dict[str, str] = {}
        """The member ids of static members, by instance id."""
        self.pending: dict[str, Timer] = {}
        """Member ids that were assigned and have not joined yet, with the timers that withdraw them."""
        self._timers = timers
        self._outbox = outbox
        self._supported: dict[str, int] = {}
        """How many members support a protocol, by its name."""
        self._waiting_to_join = 0
        """How many members have a JoinGroup request that waits."""
        self._to_sync: set[str] = set()
        """The ids of members that have not sent SyncGroup in this generation."""
        self._timer_failed = timer_failed

    @abstractmethod
    def forget_id(self, member_id: str, now: float) -> None:
        """Accept a member id that was assigned no more."""

    @abstractmethod
    def _session_is_over(self, member: Member, now: float) -> None:
        """The session timer of a member has fired."""

    def check_member(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """Check ids of a request: return NONE, UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID."""
        if instance_id is not None:
            holder = self.instances.get(instance_id)
            if holder is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if holder != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return _NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def _new_member(
        self, member_id: str, request: JoinGroupRequest, caller: Caller, assignment: bytes = b""
    ) -> Member:
        return self.make_member(
            member_id,
            request.group_instance_id,
            caller.client_id,
            caller.host,
            request.session_timeout_ms,
            request.rebalance_timeout_ms,
            [(protocol.name, protocol.metadata) for protocol in request.protocols],
            assignment,
        )

    def make_member(
        self,
        member_id: str,
        instance_id: str | None,
        client_id: str,
        host: str,
        session_timeout_ms: int,
        rebalance_timeout_ms: int,
        protocols: list[tuple[str, bytes]],
        assignment: bytes,
    ) -> Member:
        """Make a member with its session timer. It is not in the group yet."""

        def expire(at: float) -> None:
            self._session_is_over(member, at)

        member = Member(
            member_id,
            instance_id,
            client_id,
            host,
            session_timeout_ms,
            rebalance_timeout_ms,
            protocols_of(protocols),
            Timer(expire, self._timer_failed),
            assignment,
        )
        return member

    def enrol(self, member: Member) -> None:
        """Add a member. One with the same id is replaced: a stored group may name a member twice."""
        older = self.members.get(member.id)
        if older is not None:
            self._remove(older)
        self.members[member.id] = member
        member.join_tally(self._outbox.tally)
        if member.instance_id is not None:
            self.instances[member.instance_id] = member.id
        self._count(member, 1)

    def _remove(self, member: Member) -> None:
        """Remove a member. Its waiting requests must have been answered."""
        del self.members[member.id]
        member.session.end()
        member.leave_tally()
        self._count(member, -1)
        if member.join_ticket is not None:
            member.join_ticket = None
            self._waiting_to_join -= 1
        if member.instance_id is not None and self.instances.get(member.instance_id) == member.id:
            del self.instances[member.instance_id]
        self._to_sync.discard(member.id)
        if self.leader_id == member.id:
            self.leader_id = next(iter(self.members), None)

    def _count(self, member: Member, step: int) -> None:
        for name, _ in member.protocols:
            count = self._supported.get(name, 0) + step
            if count:
                self._supported[name] = count
            else:
                self._supported.pop(name, None)

    def _vote(self) -> str:
        members = self.members
        leader = members.get(self.leader_id or "") or next(iter(members.values()))
        return vote(members.values(), self._supported, len(members), leader)

    def _elect(self) -> bool:
        """Make the leader a member that has joined; return whether there is one."""
        leader = self.members.get(self.leader_id or "")
        if leader is not None and leader.join_ticket is not None:
            return True
        joined = next((member for member in self.members.values() if member.join_ticket is not None), None)
        if joined is not None:
            self.leader_id = joined.id
        return joined is not None

    def _wait_to_join(self, member: Member, ticket: Ticket) -> None:
        """Have a JoinGroup wait. An older one of the same member is refused: the member has given it up."""
        older, member.join_ticket = member.join_ticket, ticket
        if older is None:
            self._waiting_to_join += 1
        else:
            self._refuse(older, member.id, ErrorCode.REBALANCE_IN_PROGRESS)

    def _answer_join(self, member: Member, response: JoinGroupResponse, ticket: Ticket) -> None:
        if member.join_ticket is not None:
            member.join_ticket = None
            self._waiting_to_join -= 1
        self._outbox.replies.append((ticket, response))

    def _refuse(self, ticket: Ticket, member_id: str, error: ErrorCode) -> None:
        self._outbox.replies.append((ticket, refused_join(member_id, error)))

    def _joined(self, member: Member, *, with_members: bool = True) -> JoinGroupResponse:
        members: list[JoinGroupResponseMember] = []
        if with_members and member.id == self.leader_id:
            members = [
                JoinGroupResponseMember(
                    member_id=one.id, group_instance_id=one.instance_id, metadata=one.metadata(self.protocol)
                )
                for one in self.members.values()
            ]
        return JoinGroupResponse(
            generation_id=self.generation,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol,
            leader=self.leader_id or "",
            member_id=member.id,
            members=members,
        )

    def _answer_sync(self, member: Member, error: ErrorCode = _NONE) -> None:
        ticket, member.sync_ticket = member.sync_ticket, None
        assert ticket is not None
        if error:
            response = SyncGroupResponse(error_code=error)
        else:
            response = SyncGroupResponse(
                protocol_type=self.protocol_type, protocol_name=self.protocol, assignment=member.assignment
            )
        self._outbox.replies.append((ticket, response))

    def renew(self, member: Member, now: float) -> None:
        """Renew a session: it ends one session timeout from now."""
        self._timers.set(member.session, now + member.session_timeout_ms / 1000)

    def _give_id(self, member_id: str, session_timeout_ms: int, now: float) -> None:
        def expire(at: float) -> None:
            self.forget_id(member_id, at)

        timer = self.pending[member_id] = Timer(expire, self._timer_failed)
        self._outbox.given_away[self.id, member_id] = self
        self._timers.set(timer, now + session_timeout_ms / 1000)

    def _withdraw(self, member_id: str) -> bool:
        """Withdraw a member id that was assigned; return whether there was one."""
        timer = self.pending.pop(member_id, None)
        if timer is None:
            return False
        timer.end()
        self._outbox.given_away.pop((self.id, member_id), None)
        return True

    def _update(self, member: Member, request: JoinGroupRequest, ticket: Ticket) -> None:
        self._count(member, -1)
        before = size_of_protocols(member.protocols)
        member.protocols = protocols_of([(p.name, p.metadata) for p in request.protocols])
        self._outbox.tally.size_bytes += size_of_protocols(member.protocols) - before
        member.session_timeout_ms = request.session_timeout_ms
        member.rebalance_timeout_ms = request.rebalance_timeout_ms
        self._count(member, 1)
        self._wait_to_join(member, ticket)

    def _dismiss(self, member: Member) -> None:
        if member.join_ticket is not None:
            self._refuse(member.join_ticket, "", ErrorCode.UNKNOWN_MEMBER_ID)
        if member.sync_ticket is not None:
            self._answer_sync(member, ErrorCode.UNKNOWN_MEMBER_ID)
        self._remove(member)

    def _fence(self, member: Member) -> None:
        """Answer the waiting requests of a member that was replaced by another with its instance id."""
        fenced = ErrorCode.FENCED_INSTANCE_ID
        if member.join_ticket is not None:
            self._refuse(member.join_ticket, member.id, fenced)
        if member.sync_ticket is not None:
            self._answer_sync(member, fenced)

    def _replaced(self, member: Member, old_leader: str | None, version: int) -> JoinGroupResponse:
        """Return the answer to a static member that comes back while nothing has to change.

        A leader computes assignments; so the response says to skip that, or, before version 9, that
        the one it has replaced leads.
        """
        if version >= SKIPPED_ASSIGNMENT_SINCE:
            response = self._joined(member)
            response.skip_assignment = member.id == self.leader_id
            return response
        response = self._joined(member, with_members=False)
        response.leader = old_leader or ""
        return response

    def _drop(self, member_id: str) -> None:
        member = self.members.get(member_id)
        if member is not None:
            self._remove(member)
        self._withdraw(member_id)

    @property
    def size_bytes(self) -> int:
        """About what its members take in memory."""
        return sum(member.size_bytes for member in self.members.values())

    @property
    def is_of_consumers(self) -> bool:
        """Whether its members' metadata are subscriptions."""
        return self.protocol_type == CONSUMER

    def subscribed_topics(self) -> set[str] | None:
        """Return the topics that its consumers subscribe to; None where metadata cannot be read as
        subscriptions.
        """
        if not self.is_of_consumers:
            return None
        topics: set[str] = set()
        for member in self.members.values():
            subscription = topics_of_subscription(member.metadata(self.protocol))
            if subscription is None:
                return None
            topics.update(subscription)
        return topics


def refused_join(member_id: str, error: ErrorCode) -> JoinGroupResponse:
    """Return the answer to a JoinGroup request that is refused."""
    return JoinGroupResponse(error_code=error, protocol_name=None, member_id=member_id)


GENERATION_MAX = 2**31 - 1


def next_generation(generation: int) -> int:
    """Return the number of the generation after this one; 1 after the largest, or a negative one."""
    return generation + 1 if 0 <= generation < GENERATION_MAX else 1
