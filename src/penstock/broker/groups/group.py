"""One group: the machine that turns requests and the passing of time into answers.

Requests come in with `now`; what is to be answered or stored goes into `Effects`; deadlines are timers.
No I/O, no clock. The states and what leads from one to the next are the tables of `states`.

The order of checks, the error codes and the timing follow Apache Kafka's classic groups, so that a
client cannot tell the two apart.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from penstock.broker.groups.effects import Effects, GroupSettings
from penstock.broker.groups.member import (
    Caller,
    Member,
    Ticket,
    protocols_of,
    size_of_protocols,
    topics_of_subscription,
    vote,
)
from penstock.broker.groups.states import REFUSALS, REJOINS, TRANSITIONS, Ask, Cause, Rejoin, State
from penstock.broker.groups.timers import Timer, Timers
from penstock.printable import printable
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.join_group_response import JoinGroupResponse, JoinGroupResponseMember
from penstock.protocol.messages.sync_group_response import SyncGroupResponse

if TYPE_CHECKING:
    from penstock.protocol.messages.join_group_request import JoinGroupRequest
    from penstock.protocol.messages.sync_group_request import SyncGroupRequest

CONSUMER = "consumer"
"""The protocol type whose metadata are subscriptions."""

MEMBER_ID_REQUIRED_SINCE = 4
SKIPPED_ASSIGNMENT_SINCE = 9

ID_NAME_CHARACTERS_MAX = 255
"""How much of a client's name is taken into a member id.

An id is a string of at most 32,767 bytes in answers and in what is stored, and a name may be as long.
"""

JOIN_RETRY_S = 1.0
"""How long static members are waited for at least, before it is looked again whether one has joined.

A member's own rebalance timeout may be 0 or negative, which would have the timer due again at once.
"""

NEW_MEMBER_TIMEOUT_S = 300.0
"""A member that joins for the first time cannot send heartbeats; its first wait ends after this (Kafka's)."""

_NONE = ErrorCode.NONE


class Group:
    """The members of a group and its generation. `since_ms` is when it has last become what it is."""

    def __init__(
        self,
        group_id: str,
        settings: GroupSettings,
        timers: Timers,
        effects: Effects,
        new_id: Callable[[str], str],
        timer_failed: Callable[[Group, float], None] | None = None,
    ) -> None:
        """`timer_failed`, if there is one, is called inside the ``except`` block of a timer that raised."""
        self.id = group_id
        self.state = State.EMPTY
        self.since_ms = -1
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader_id: str | None = None
        self.members: dict[str, Member] = {}
        self.instances: dict[str, str] = {}
        """The ids of static members, by instance id."""
        self.pending: dict[str, Timer] = {}
        """Ids that were given away, until somebody joins with them."""
        self._settings = settings
        self._timers = timers
        self._effects = effects
        self._new_id = new_id
        self._supported: dict[str, int] = {}
        self._waiting_to_join = 0
        self._to_sync: set[str] = set()
        self._is_first = False
        """Whether the rebalance at work has begun with an empty group."""
        self._has_grown = False
        self._delay_left_s = 0.0
        self._timer_failed = None if timer_failed is None else partial(timer_failed, self)
        self._join_timer = Timer(self._join_time_is_up, self._timer_failed)
        self._sync_timer = Timer(self._sync_time_is_up, self._timer_failed)

    def __repr__(self) -> str:
        members = f"{len(self.members)} members"
        return printable(f"<Group {self.id} {self.state}, generation {self.generation}, {members}>")

    def _go(self, cause: Cause) -> None:
        """Change the state. Whatever else changes it is wrong."""
        self.state = TRANSITIONS[self.state, cause]

    def refusal(self, ask: Ask) -> ErrorCode:
        """The error that the state answers a request with; NONE where it may go on."""
        return REFUSALS.get((ask, self.state), _NONE)

    # --- JoinGroup ---------------------------------------------------------------------------------------

    def join(self, request: JoinGroupRequest, caller: Caller, ticket: Ticket, now: float) -> None:
        """Somebody wants to be a member, or to be asked again what the group agrees on."""
        member_id = request.member_id
        if not self._has_room_for(member_id):
            self._refuse(ticket, "", ErrorCode.GROUP_MAX_SIZE_REACHED)
            self._drop(member_id)
            self.go_on(now)
        elif not self.accepts(request):
            self._refuse(ticket, member_id, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        elif member_id:
            self._join_known(request, caller, ticket, now)
        elif request.group_instance_id is not None:
            new_id = self._new_id(request.group_instance_id[:ID_NAME_CHARACTERS_MAX])
            if request.group_instance_id in self.instances:
                self._replace(request, caller, ticket, new_id, now)
            else:
                self._add(request, caller, ticket, new_id, now)
        else:
            new_id = self._new_id(caller.client_id[:ID_NAME_CHARACTERS_MAX])
            if caller.version >= MEMBER_ID_REQUIRED_SINCE:
                self._give_id(new_id, request.session_timeout_ms, now)
                self._refuse(ticket, new_id, ErrorCode.MEMBER_ID_REQUIRED)
            else:
                self._add(request, caller, ticket, new_id, now)

    def _has_room_for(self, member_id: str) -> bool:
        """In a rebalance whoever waits counts, so that the last to rejoin are those who go."""
        size = self._settings.max_size
        if self.state is State.EMPTY:
            return True
        if self.state is State.PREPARING:
            member = self.members.get(member_id)
            return (member is not None and member.join_ticket is not None) or self._waiting_to_join < size
        return member_id in self.members or len(self.members) < size

    def accepts(self, request: JoinGroupRequest) -> bool:
        """Whether a member with these protocols leaves the group one that all know."""
        if self.state is State.EMPTY:
            return bool(request.protocol_type and request.protocols)
        if request.protocol_type != self.protocol_type:
            return False
        size = len(self.members)
        return any(self._supported.get(protocol.name, 0) == size for protocol in request.protocols)

    def _give_id(self, member_id: str, session_timeout_ms: int, now: float) -> None:
        def expire(at: float) -> None:
            self.forget_id(member_id, at)

        timer = self.pending[member_id] = Timer(expire, self._timer_failed)
        self._effects.given_away[self.id, member_id] = self
        self._timers.set(timer, now + session_timeout_ms / 1000)

    def forget_id(self, member_id: str, now: float) -> None:
        """Member ids that were given away are not accepted any more."""
        self._withdraw(member_id)
        if not self.members and not self.pending and not self.generation and self.state is State.EMPTY:
            self._effects.unused.append(self)
        self.go_on(now)

    def _withdraw(self, member_id: str) -> bool:
        """Remove an id that was given away; whether it was."""
        timer = self.pending.pop(member_id, None)
        if timer is None:
            return False
        timer.end()
        self._effects.given_away.pop((self.id, member_id), None)
        return True

    def _join_known(self, request: JoinGroupRequest, caller: Caller, ticket: Ticket, now: float) -> None:
        member_id = request.member_id
        if member_id in self.pending:
            self._add(request, caller, ticket, member_id, now)
            return
        error = self.check_member(member_id, request.group_instance_id)
        if error:
            self._refuse(ticket, member_id, error)
            return
        member = self.members[member_id]
        protocols = protocols_of([(protocol.name, protocol.metadata) for protocol in request.protocols])
        kind = 2 if protocols != member.protocols else int(member_id == self.leader_id)
        decision = REJOINS[self.state][kind]
        if decision is Rejoin.REPEAT:
            self._answer_join(member, self._joined(member), ticket)
        elif decision is Rejoin.RESET:
            self._refuse(ticket, member_id, ErrorCode.UNKNOWN_MEMBER_ID)
        else:
            self._update(member, request, ticket)
            if decision is Rejoin.REBALANCE:
                self._rebalance(Cause.MEMBER_CHANGES, now)
            else:
                self.go_on(now)

    def check_member(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """Whether somebody is the member it says it is: NONE, UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID."""
        if instance_id is not None:
            holder = self.instances.get(instance_id)
            if holder is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if holder != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return _NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def _add(
        self, request: JoinGroupRequest, caller: Caller, ticket: Ticket, member_id: str, now: float
    ) -> None:
        self._withdraw(member_id)
        if not self.members:
            self.protocol_type = request.protocol_type
        member = self._new_member(member_id, request, caller)
        member.is_new = True
        self.enrol(member)
        if self.leader_id is None:
            self.leader_id = member_id
        self._wait_to_join(member, ticket)
        self._timers.set(member.session, now + NEW_MEMBER_TIMEOUT_S)
        if self.state is State.PREPARING:
            self._has_grown = True
            self.go_on(now)
        else:
            self._rebalance(Cause.MEMBER_JOINS, now)

    def _replace(
        self, request: JoinGroupRequest, caller: Caller, ticket: Ticket, new_id: str, now: float
    ) -> None:
        """A static member has come back without its id: it takes the place of the one that had it."""
        assert request.group_instance_id is not None
        old = self.members[self.instances[request.group_instance_id]]
        old_leader = self.leader_id
        self._fence(old)
        self._remove(old)
        member = self._new_member(new_id, request, caller, old.assignment)
        self.enrol(member)
        if old_leader == old.id:
            self.leader_id = new_id
        self.renew(member, now)
        if self.state is State.PREPARING:
            self._wait_to_join(member, ticket)
            self.go_on(now)
        elif self.state is State.STABLE and self._vote() == self.protocol:
            self._effects.saves.append(self)
            self._answer_join(member, self._replaced(member, old_leader, caller.version), ticket)
        else:
            self._wait_to_join(member, ticket)
            self._rebalance(Cause.MEMBER_CHANGES, now)

    def _replaced(self, member: Member, old_leader: str | None, version: int) -> JoinGroupResponse:
        """The answer to a static member that comes back while nothing has to change.

        Told that it leads, it would assign again; so it is told to skip that, or, before version 9, that
        the one it has replaced leads.
        """
        if version >= SKIPPED_ASSIGNMENT_SINCE:
            response = self._joined(member)
            response.skip_assignment = member.id == self.leader_id
            return response
        response = self._joined(member, with_members=False)
        response.leader = old_leader or ""
        return response

    def _fence(self, member: Member) -> None:
        """Answer what waits of a member that another one has taken the place of."""
        fenced = ErrorCode.FENCED_INSTANCE_ID
        if member.join_ticket is not None:
            self._refuse(member.join_ticket, member.id, fenced)
        if member.sync_ticket is not None:
            self._answer_sync(member, fenced)

    def _update(self, member: Member, request: JoinGroupRequest, ticket: Ticket) -> None:
        self._count(member, -1)
        before = size_of_protocols(member.protocols)
        member.protocols = protocols_of([(p.name, p.metadata) for p in request.protocols])
        self._effects.tally.size_bytes += size_of_protocols(member.protocols) - before
        member.session_timeout_ms = request.session_timeout_ms
        member.rebalance_timeout_ms = request.rebalance_timeout_ms
        self._count(member, 1)
        self._wait_to_join(member, ticket)

    # --- members -----------------------------------------------------------------------------------------

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
        """A member with its session timer, not in the group yet."""

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
        """Put a member in, in the place of one with the same id (a stored group may name one twice)."""
        older = self.members.get(member.id)
        if older is not None:
            self._remove(older)
        self.members[member.id] = member
        member.join_tally(self._effects.tally)
        if member.instance_id is not None:
            self.instances[member.instance_id] = member.id
        self._count(member, 1)

    def _remove(self, member: Member) -> None:
        """Take a member out. What it has waiting is to be answered before."""
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

    def _drop(self, member_id: str) -> None:
        member = self.members.get(member_id)
        if member is not None:
            self._remove(member)
        self._withdraw(member_id)

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

    def renew(self, member: Member, now: float) -> None:
        """A member has been heard of: its session ends one timeout from now."""
        self._timers.set(member.session, now + member.session_timeout_ms / 1000)

    def _session_is_over(self, member: Member, now: float) -> None:
        waits = member.join_ticket is not None or member.sync_ticket is not None
        if self.members.get(member.id) is member and (member.is_new or not waits):
            self.expel(member, now)

    def expel(self, member: Member, now: float) -> None:
        """A member is gone. What it still waits for is answered with UNKNOWN_MEMBER_ID."""
        self._dismiss(member)
        self.members_have_gone(now)

    def _dismiss(self, member: Member) -> None:
        if member.join_ticket is not None:
            self._refuse(member.join_ticket, "", ErrorCode.UNKNOWN_MEMBER_ID)
        if member.sync_ticket is not None:
            self._answer_sync(member, ErrorCode.UNKNOWN_MEMBER_ID)
        self._remove(member)

    def members_have_gone(self, now: float) -> None:
        """After members were taken out: begin a rebalance, or go on with the one at work."""
        if self.state in (State.STABLE, State.COMPLETING):
            self._rebalance(Cause.MEMBER_GOES, now)
        else:
            self.go_on(now)

    # --- a rebalance -------------------------------------------------------------------------------------

    def _rebalance(self, cause: Cause, now: float) -> None:
        """Ask everybody to join again, and wait for them."""
        for member in self.members.values():
            if member.sync_ticket is not None:
                self._answer_sync(member, ErrorCode.REBALANCE_IN_PROGRESS)
                self.renew(member, now)
            if self.state is State.COMPLETING:
                member.assignment = b""
        self._sync_timer.stop()
        self._to_sync.clear()
        self._is_first = self.state is State.EMPTY
        self._go(cause)
        if self._is_first:
            delay_s = self._settings.initial_rebalance_delay_ms / 1000
            self._has_grown = False
            self._delay_left_s = max(self._rebalance_timeout_s() - delay_s, 0.0)
            self._timers.set(self._join_timer, now + delay_s)
        else:
            self._timers.set(self._join_timer, now + self._rebalance_timeout_s())
            self.go_on(now)

    def resume_rebalance(self, now: float) -> None:
        """A restart has cut a generation short before its leader assigned: its members begin another."""
        self.state = State.PREPARING
        self._timers.set(self._join_timer, now + self._rebalance_timeout_s())

    def _rebalance_timeout_s(self) -> float:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0) / 1000

    def go_on(self, now: float) -> None:
        """Complete the join phase if there is one and nobody is missing."""
        if (
            self.state is State.PREPARING
            and not self._is_first
            and self._waiting_to_join == len(self.members)
            and not self.pending
        ):
            self._complete_join(now)

    def _join_time_is_up(self, now: float) -> None:
        if self._is_first and self._has_grown and self._delay_left_s > 0:
            # More have come while a new group waits for its first members: give others the chance.
            self._has_grown = False
            full_delay_s = self._settings.initial_rebalance_delay_ms / 1000
            delay_s = min(full_delay_s, self._delay_left_s)
            self._delay_left_s = max(self._delay_left_s - full_delay_s, 0.0)
            self._timers.set(self._join_timer, now + delay_s)
        elif self.state is State.PREPARING:
            self._complete_join(now)

    def _complete_join(self, now: float) -> None:
        """Begin a new generation with those who have joined."""
        for member in [m for m in self.members.values() if m.join_ticket is None and not m.is_static]:
            self._remove(member)
        if self.members and not self._elect():
            # Static members alone, none of which is back: they have until their sessions end.
            self._timers.set(self._join_timer, now + max(self._rebalance_timeout_s(), JOIN_RETRY_S))
            return
        self._join_timer.stop()
        self._to_sync.clear()
        self.generation = next_generation(self.generation)
        # Stored before anybody hears of it: no restart may give the number away again.
        self._effects.saves.append(self)
        if not self.members:
            self.protocol = None
            self._go(Cause.NOBODY_LEFT)
            return
        self.protocol = self._vote()
        self._go(Cause.ALL_JOINED)
        for member in self.members.values():
            if member.join_ticket is not None:
                self._answer_join(member, self._joined(member), member.join_ticket)
            self.renew(member, now)
            member.is_new = False
        self._to_sync.update(self.members)
        self._timers.set(self._sync_timer, now + self._rebalance_timeout_s())

    def _elect(self) -> bool:
        """See to it that the leader is somebody who has joined."""
        leader = self.members.get(self.leader_id or "")
        if leader is not None and leader.join_ticket is not None:
            return True
        joined = next((member for member in self.members.values() if member.join_ticket is not None), None)
        if joined is not None:
            self.leader_id = joined.id
        return joined is not None

    def _sync_time_is_up(self, now: float) -> None:
        if self._to_sync and self.state in (State.COMPLETING, State.STABLE):
            for member_id in list(self._to_sync):
                self._dismiss(self.members[member_id])
            self._rebalance(Cause.SYNC_IS_OVERDUE, now)

    # --- SyncGroup ---------------------------------------------------------------------------------------

    def sync(self, request: SyncGroupRequest, ticket: Ticket, now: float) -> None:
        """A member asks what is assigned to it; the leader says what is assigned to whom."""
        error = self._check_sync(request)
        if error:
            self._effects.replies.append((ticket, SyncGroupResponse(error_code=error)))
            return
        member = self.members[request.member_id]
        if member.sync_ticket is not None:
            self._answer_sync(member, ErrorCode.REBALANCE_IN_PROGRESS)
        member.sync_ticket = ticket
        self._to_sync.discard(member.id)
        if not self._to_sync:
            self._sync_timer.stop()
        if self.state is State.STABLE:
            self._answer_sync(member)
            self.renew(member, now)
        elif member.id == self.leader_id:
            given = {entry.member_id: entry.assignment for entry in request.assignments}
            self._go(Cause.LEADER_ASSIGNS)
            self._effects.saves.append(self)
            for one in self.members.values():
                one.assignment = bytes(given.get(one.id, b""))
                if one.sync_ticket is not None:
                    self._answer_sync(one)
                    self.renew(one, now)

    def _check_sync(self, request: SyncGroupRequest) -> ErrorCode:
        error = self.check_member(request.member_id, request.group_instance_id)
        if error:
            return error
        if request.generation_id != self.generation:
            return ErrorCode.ILLEGAL_GENERATION
        if request.protocol_type not in (None, self.protocol_type):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if request.protocol_name not in (None, self.protocol):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return self.refusal(Ask.SYNC)

    def was_not_stored(self, now: float) -> None:
        """What this group asked to be stored could not be: nobody may act on it."""
        if self.state in (State.COMPLETING, State.STABLE):
            for member in self.members.values():
                member.assignment = b""
            self._rebalance(Cause.NOT_STORED, now)

    # --- Heartbeat, LeaveGroup, OffsetCommit -------------------------------------------------------------

    def heartbeat(self, member_id: str, instance_id: str | None, generation: int, now: float) -> ErrorCode:
        """A member is alive. Return the error to answer with."""
        error = self.check_member(member_id, instance_id)
        if error:
            return error
        if generation != self.generation:
            return ErrorCode.ILLEGAL_GENERATION
        self.renew(self.members[member_id], now)
        return self.refusal(Ask.HEARTBEAT)

    def leave(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """Take a member out at its own wish, or by its instance id alone at an administrator's.

        `members_have_gone` is to be called once, after all those who leave together.
        """
        if not member_id:
            holder = self.instances.get(instance_id) if instance_id is not None else None
            if holder is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            member_id = holder
        elif self._withdraw(member_id):
            return _NONE
        else:
            error = self.check_member(member_id, instance_id)
            if error:
                return error
        self._dismiss(self.members[member_id])
        return _NONE

    def check_commit(self, member_id: str, instance_id: str | None, generation: int, now: float) -> ErrorCode:
        """Whether somebody may commit offsets; a member that may is alive."""
        if generation < 0 and self.state is State.EMPTY:
            return _NONE
        if generation < 0 and not member_id and instance_id is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        error = self.check_member(member_id, instance_id)
        if error:
            return error
        if generation != self.generation:
            return ErrorCode.ILLEGAL_GENERATION
        error = self.refusal(Ask.COMMIT)
        if not error:
            self.renew(self.members[member_id], now)
        return error

    # --- answers -----------------------------------------------------------------------------------------

    def _wait_to_join(self, member: Member, ticket: Ticket) -> None:
        """Note who is to be answered. An older request of the same member has been given up by it."""
        older, member.join_ticket = member.join_ticket, ticket
        if older is None:
            self._waiting_to_join += 1
        else:
            self._refuse(older, member.id, ErrorCode.REBALANCE_IN_PROGRESS)

    def _answer_join(self, member: Member, response: JoinGroupResponse, ticket: Ticket) -> None:
        if member.join_ticket is not None:
            member.join_ticket = None
            self._waiting_to_join -= 1
        self._effects.replies.append((ticket, response))

    def _refuse(self, ticket: Ticket, member_id: str, error: ErrorCode) -> None:
        self._effects.replies.append((ticket, refused_join(member_id, error)))

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
        self._effects.replies.append((ticket, response))

    # --- what others ask ---------------------------------------------------------------------------------

    @property
    def can_be_deleted(self) -> bool:
        """Whether nobody is in it."""
        return not self.refusal(Ask.DELETE)

    @property
    def is_of_consumers(self) -> bool:
        """Whether its members tell which topics they want."""
        return self.protocol_type == CONSUMER

    def subscribed_topics(self) -> set[str] | None:
        """The topics that its consumers want; None where that cannot be known."""
        if not self.is_of_consumers:
            return None
        topics: set[str] = set()
        for member in self.members.values():
            subscription = topics_of_subscription(member.metadata(self.protocol))
            if subscription is None:
                return None
            topics.update(subscription)
        return topics

    def delete(self) -> None:
        """It is no more. Ids given away are worth nothing."""
        self._go(Cause.DELETED)
        for member_id in list(self.pending):
            self._withdraw(member_id)

    def disband(self) -> None:
        """Dismiss everybody, whatever the state; the group is not to be used any more."""
        for member in list(self.members.values()):
            self._dismiss(member)
        for member_id in list(self.pending):
            self._withdraw(member_id)
        for timer in (self._join_timer, self._sync_timer):
            timer.stop()


def next_generation(generation: int) -> int:
    """The number of the generation after this one. A stored group may have the largest there is."""
    return generation + 1 if 0 <= generation < GENERATION_MAX else 1


GENERATION_MAX = 2**31 - 1


def refused_join(member_id: str, error: ErrorCode) -> JoinGroupResponse:
    """The answer to a JoinGroup request that leads nowhere."""
    return JoinGroupResponse(error_code=error, protocol_name=None, member_id=member_id)
