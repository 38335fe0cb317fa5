"""One classic group: a state machine whose inputs are requests and timers, and whose outputs are responses.

The coordinator checks requests before it passes them on, through the interface `coordinator.JoinableGroup`.
This module does no I/O and has no clock. Requests come in with `now`, in seconds of the monotonic clock;
responses and groups to be stored go into a `GroupOutbox`; deadlines are timers. The states and their
transitions are the tables in `states`.

The order of checks, the error codes and the timing follow Apache Kafka's classic groups, so that a client
cannot distinguish Penstock from Kafka.

An exception, which means a defect of the broker, may leave a group partly changed. The other members must not
lose their group because of such a defect: `ClassicGroup.recover` recomputes what is derived from the members,
and asks them to rejoin.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING

from penstock.broker.coordination.timers import Timer, Timers
from penstock.broker.groups.classic.member import Caller, Member, Tally, Ticket, check_ids, protocols_of
from penstock.broker.groups.classic.roster import Roster
from penstock.broker.groups.classic.states import (
    BYPASSES,
    REFUSALS,
    REJOINS,
    TRANSITIONS,
    Bypass,
    Cause,
    Rejoin,
    RequestKind,
    State,
)
from penstock.broker.groups.offsets import OffsetExpiration
from penstock.printable import printable
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.join_group_response import JoinGroupResponse, JoinGroupResponseMember
from penstock.protocol.messages.sync_group_response import SyncGroupResponse

if TYPE_CHECKING:
    from penstock.broker.groups.settings import ClassicGroupSettings
    from penstock.protocol.message import Message
    from penstock.protocol.messages.join_group_request import JoinGroupRequest
    from penstock.protocol.messages.sync_group_request import SyncGroupRequest

CONSUMER = "consumer"
"""The protocol type of consumers. The metadata of their members are subscriptions to topics."""

SKIPPED_ASSIGNMENT_SINCE = 9
"""The first version of JoinGroup whose response can ask the leader to skip the assignment (KIP-814)."""

JOIN_RETRY_S = 1.0
"""The shortest interval, in seconds, at which a group checks if its missing static members have rejoined.

The group waits for the longest rebalance timeout of its members. This timeout may be 0 or negative; without a
lower limit, the timer would then be due again at once.
"""

NEW_MEMBER_TIMEOUT_S = 300.0
"""The session timeout, in seconds, of a new member until its first JoinGroup is answered, as in Kafka."""

_NONE = ErrorCode.NONE


class GroupOutbox:
    """Collects the output of groups: the caller stores the groups first, then sends the responses, in order.

    Groups append to it; the service that does the I/O takes from it.
    """

    def __init__(self) -> None:
        self.saves: list[ClassicGroup] = []
        self.replies: list[tuple[Ticket, Message]] = []
        self.unused: list[ClassicGroup] = []
        """Groups whose assigned member ids were withdrawn before any member joined: they can be deleted."""
        self.given_away: dict[tuple[str, str], ClassicGroup] = {}
        """A dict from (group id, member id) to the group, for member ids that were assigned
        (MEMBER_ID_REQUIRED) and have not joined yet; the oldest first.
        """
        self.tally = Tally()

    def take(self) -> tuple[list[ClassicGroup], list[tuple[Ticket, Message]]]:
        """Return and remove the groups to be stored and the responses to be sent."""
        taken = self.saves, self.replies
        if self.saves or self.replies:
            self.saves, self.replies = [], []
        return taken


class ClassicGroup:
    """One classic group: its members, its generation and its state.

    `since_ms` is the wall-clock time, in ms, of the last stored state change, or -1 if there was none.
    """

    def __init__(
        self,
        group_id: str,
        settings: ClassicGroupSettings,
        timers: Timers,
        outbox: GroupOutbox,
        new_id: Callable[[str], str],
        timer_failed: Callable[[ClassicGroup, float], None] | None = None,
    ) -> None:
        """Make an empty group; `timer_failed` is called if a timer raises, inside the ``except`` block."""
        self.id = group_id
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.roster = Roster(outbox.tally)
        self.pending: dict[str, Timer] = {}
        """Expiry timers by member id, for ids that were assigned (MEMBER_ID_REQUIRED) and have not joined
        yet.
        """
        self._timers = timers
        self._outbox = outbox
        self._timer_failed = failed = None if timer_failed is None else partial(timer_failed, self)
        self._state = State.EMPTY
        self.since_ms = -1
        self._settings = settings
        self._new_id = new_id
        self._is_first = False
        """True if the group had no members when the rebalance in progress began."""
        self._has_grown = False
        self._delay_left_s = 0.0
        self._is_recovering = False
        """True if `recover` has repaired the group since its last generation began. The next call of
        `recover` then removes all members.
        """
        self._join_timer = Timer(self._join_time_is_up, failed)
        self._sync_timer = Timer(self._sync_time_is_up, failed)

    def __repr__(self) -> str:
        members = f"{len(self.members)} members"
        return printable(f"<Group {self.id} {self.state}, generation {self.generation}, {members}>")

    @property
    def members(self) -> dict[str, Member]:
        """A dict from member id to member."""
        return self.roster.members

    @property
    def state(self) -> State:
        """The state of the group, which only `_go` and `bypass` change."""
        return self._state

    def _go(self, cause: Cause) -> None:
        """Change the state by the transition that `TRANSITIONS` lists for the present state and `cause`.

        Raises:
            IllegalTransitionError: the table has no transition for this state and cause.
        """
        self._state = TRANSITIONS.next_state(self._state, cause)

    def bypass(self, reason: Bypass) -> None:
        """Set the state to `BYPASSES[reason]`, independently of the present state."""
        self._state = BYPASSES[reason]

    def refusal(self, ask: RequestKind) -> ErrorCode:
        """Return the error for requests of this kind in the present state, or NONE if they are allowed."""
        return REFUSALS.get((ask, self.state), _NONE)

    # --- the interface `JoinableGroup` ------------------------------------------------------------------

    @property
    def instances(self) -> Mapping[str, str]:
        """The member ids of static members, by instance id."""
        return self.roster.instances

    def generation_of(self, member_id: str) -> int:
        """Return the generation that a member's requests must contain."""
        return self.generation

    def protocol_of(self, member_id: str) -> tuple[str | None, str | None]:
        """Return the protocol type and the protocol that a member may name in SyncGroup."""
        return self.protocol_type, self.protocol

    def has_room_for(self, member_id: str) -> bool:
        """Return True if a member may join without exceeding the group's maximum size.

        During a rebalance only members that have rejoined count, so that the latest ones are refused.
        """
        size = self._settings.max_size
        if self.state is State.EMPTY:
            return True
        if self.state is State.PREPARING:
            member = self.members.get(member_id)
            return (
                member is not None and member.join_ticket is not None
            ) or self.roster.waiting_to_join < size
        return member_id in self.members or len(self.members) < size

    def accepts(self, protocol_type: str, protocols: Collection[str]) -> bool:
        """Return True if all members support at least one of the joining member's protocols."""
        if self.state is State.EMPTY:
            return bool(protocol_type and protocols)
        return protocol_type == self.protocol_type and any(map(self.roster.has_in_common, protocols))

    def give_id(self, request: JoinGroupRequest, caller: Caller, now: float) -> str:
        """Return a new member id. The client must join with this id before the session timeout."""

        def expire(at: float) -> None:
            self.forget_id(member_id, at)

        member_id = self._new_id(caller.client_id)
        timer = self.pending[member_id] = Timer(expire, self._timer_failed)
        self._outbox.given_away[self.id, member_id] = self
        self._timers.set(timer, now + request.session_timeout_ms / 1000)
        return member_id

    def withdraw(self, member_id: str) -> bool:
        """Withdraw a member id that was assigned but not used; return True if there was such an id."""
        timer = self.pending.pop(member_id, None)
        if timer is None:
            return False
        timer.end()
        self._outbox.given_away.pop((self.id, member_id), None)
        return True

    def refuse(self, ticket: Ticket, member_id: str, error: ErrorCode) -> None:
        """Answer a JoinGroup with an error."""
        self._outbox.replies.append((ticket, refused_join(member_id, error)))

    def heartbeat(self, member_id: str, now: float) -> ErrorCode:
        """Handle Heartbeat: renew the session of a member; return the error to respond with, or NONE."""
        self.renew(self.members[member_id], now)
        return self.refusal(RequestKind.HEARTBEAT)

    def leave(self, member_id: str) -> None:
        """Remove a member; the caller then calls `members_have_gone`."""
        self._dismiss(self.members[member_id])

    # --- JoinGroup ---------------------------------------------------------------------------------------

    def join(self, request: JoinGroupRequest, caller: Caller, ticket: Ticket, now: float) -> None:
        """Handle JoinGroup: add a member, or let an existing member take part in the current rebalance."""
        instance_id = request.group_instance_id
        if request.member_id:
            self._join_known(request, caller, ticket, now)
            return
        new_id = self._new_id(caller.client_id if instance_id is None else instance_id)
        if instance_id in self.instances:
            self._replace(request, caller, ticket, new_id, now)
        else:
            self._add(request, caller, ticket, new_id, now)

    def forget_id(self, member_id: str, now: float) -> None:
        """Withdraw a member id that was assigned but not used, so that a JoinGroup with it is refused."""
        self.withdraw(member_id)
        if not self.members and not self.pending and not self.generation and self.state is State.EMPTY:
            self._outbox.unused.append(self)
        self.go_on(now)

    def _join_known(self, request: JoinGroupRequest, caller: Caller, ticket: Ticket, now: float) -> None:
        member_id = request.member_id
        if member_id in self.pending:
            self._add(request, caller, ticket, member_id, now)
            return
        error = check_ids(self.members, self.instances, member_id, request.group_instance_id)
        if error:
            self.refuse(ticket, member_id, error)
            return
        member = self.members[member_id]
        protocols = protocols_of([(protocol.name, protocol.metadata) for protocol in request.protocols])
        kind = 2 if protocols != member.protocols else int(member_id == self.roster.leader_id)
        decision = REJOINS[self.state][kind]
        if decision is Rejoin.REPEAT:
            self._answer_join(member, self._joined(member), ticket)
        elif decision is Rejoin.RESET:
            self.refuse(ticket, member_id, ErrorCode.UNKNOWN_MEMBER_ID)
        else:
            self._update(member, request, ticket)
            if decision is Rejoin.REBALANCE:
                self._rebalance(Cause.MEMBER_CHANGES, now)
            else:
                self.go_on(now)

    def _add(
        self, request: JoinGroupRequest, caller: Caller, ticket: Ticket, member_id: str, now: float
    ) -> None:
        self.withdraw(member_id)
        if not self.members:
            self.protocol_type = request.protocol_type
        member = self._new_member(member_id, request, caller)
        member.is_new = True
        self.roster.enrol(member)
        if self.roster.leader_id is None:
            self.roster.leader_id = member_id
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
        """Replace a static member that has rejoined without its member id, keeping its instance id."""
        assert request.group_instance_id is not None
        old = self.members[self.roster.instances[request.group_instance_id]]
        old_leader = self.roster.leader_id
        self._fence(old)
        self.roster.remove(old)
        member = self._new_member(new_id, request, caller, old.assignment)
        self.roster.enrol(member)
        if old_leader == old.id:
            self.roster.leader_id = new_id
        self.renew(member, now)
        if self.state is State.PREPARING:
            self._wait_to_join(member, ticket)
            self.go_on(now)
        elif self.state is State.STABLE and self.roster.vote() == self.protocol:
            self._outbox.saves.append(self)
            self._answer_join(member, self._replaced(member, old_leader, caller.version), ticket)
        else:
            self._wait_to_join(member, ticket)
            self._rebalance(Cause.MEMBER_CHANGES, now)

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
        """Make a member with its session timer, without adding it to the group."""

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

    def renew(self, member: Member, now: float) -> None:
        """Restart a member's session timeout."""
        self._timers.set(member.session, now + member.session_timeout_ms / 1000)

    def _dismiss(self, member: Member) -> None:
        if member.join_ticket is not None:
            self.refuse(member.join_ticket, "", ErrorCode.UNKNOWN_MEMBER_ID)
        if member.sync_ticket is not None:
            self._answer_sync(member, ErrorCode.UNKNOWN_MEMBER_ID)
        self.roster.remove(member)

    def _fence(self, member: Member) -> None:
        """Answer the waiting requests of a replaced static member with FENCED_INSTANCE_ID."""
        fenced = ErrorCode.FENCED_INSTANCE_ID
        if member.join_ticket is not None:
            self.refuse(member.join_ticket, member.id, fenced)
        if member.sync_ticket is not None:
            self._answer_sync(member, fenced)

    def _session_is_over(self, member: Member, now: float) -> None:
        waits = member.join_ticket is not None or member.sync_ticket is not None
        if self.members.get(member.id) is member and (member.is_new or not waits):
            self.expel(member, now)

    def expel(self, member: Member, now: float) -> None:
        """Remove a member, and begin a rebalance.

        The member's waiting requests are answered with UNKNOWN_MEMBER_ID.
        """
        self._dismiss(member)
        self.members_have_gone(now)

    def members_have_gone(self, now: float) -> None:
        """Begin a rebalance, or continue the current one, after members were removed."""
        if self.state in (State.STABLE, State.COMPLETING):
            self._rebalance(Cause.MEMBER_GOES, now)
        else:
            self.go_on(now)

    # --- a rebalance -------------------------------------------------------------------------------------

    def _rebalance(self, cause: Cause, now: float) -> None:
        """Begin a rebalance: ask all members to rejoin, and wait for their JoinGroup requests."""
        for member in self.members.values():
            if member.sync_ticket is not None:
                self._answer_sync(member, ErrorCode.REBALANCE_IN_PROGRESS)
                self.renew(member, now)
            if self.state is State.COMPLETING:
                member.assignment = b""
        self._sync_timer.stop()
        self.roster.to_sync.clear()
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

    def resume_rebalance(self, reason: Bypass, now: float) -> None:
        """Begin a new rebalance for the members of a group whose last generation was not completed."""
        self.bypass(reason)
        self._timers.set(self._join_timer, now + self._rebalance_timeout_s())

    def _rebalance_timeout_s(self) -> float:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0) / 1000

    def go_on(self, now: float) -> None:
        """Complete the join phase, if the group is in that phase and all members have joined."""
        if (
            self.state is State.PREPARING
            and not self._is_first
            and self.roster.waiting_to_join == len(self.members)
            and not self.pending
        ):
            self._complete_join(now)

    def _join_time_is_up(self, now: float) -> None:
        if self._is_first and self._has_grown and self._delay_left_s > 0:
            # More members have joined while a new group waits for its first ones: wait for others once more.
            self._has_grown = False
            full_delay_s = self._settings.initial_rebalance_delay_ms / 1000
            delay_s = min(full_delay_s, self._delay_left_s)
            self._delay_left_s = max(self._delay_left_s - full_delay_s, 0.0)
            self._timers.set(self._join_timer, now + delay_s)
        elif self.state is State.PREPARING:
            self._complete_join(now)

    def _complete_join(self, now: float) -> None:
        """Begin a new generation with the members that have joined."""
        for member in [m for m in self.members.values() if m.join_ticket is None and not m.is_static]:
            self.roster.remove(member)
        if self.members and not self.roster.elect():
            # Only static members, none of which has rejoined: they have until their sessions end.
            self._timers.set(self._join_timer, now + max(self._rebalance_timeout_s(), JOIN_RETRY_S))
            return
        self._join_timer.stop()
        self.roster.to_sync.clear()
        self.generation = next_generation(self.generation)
        # Stored before it is answered: after a restart no other generation may have the same number.
        self._outbox.saves.append(self)
        if not self.members:
            self.protocol = None
            self._go(Cause.NO_MEMBERS_LEFT)
            return
        self.protocol = self.roster.vote()
        self._go(Cause.ALL_JOINED)
        for member in self.members.values():
            if member.join_ticket is not None:
                self._answer_join(member, self._joined(member), member.join_ticket)
            self.renew(member, now)
            member.is_new = False
        self.roster.to_sync.update(self.members)
        self._timers.set(self._sync_timer, now + self._rebalance_timeout_s())
        self._is_recovering = False

    def _sync_time_is_up(self, now: float) -> None:
        if self.roster.to_sync and self.state in (State.COMPLETING, State.STABLE):
            for member_id in list(self.roster.to_sync):
                self._dismiss(self.members[member_id])
            self._rebalance(Cause.SYNC_IS_OVERDUE, now)

    # --- SyncGroup ---------------------------------------------------------------------------------------

    def sync(self, request: SyncGroupRequest, ticket: Ticket, now: float) -> ErrorCode:
        """Handle SyncGroup: store the leader's assignments, and answer a member with its assignment.

        Returns NONE, or the error to respond with if the request is refused.
        """
        error = self.refusal(RequestKind.SYNC)
        if error:
            return error
        member = self.members[request.member_id]
        if member.sync_ticket is not None:
            self._answer_sync(member, ErrorCode.REBALANCE_IN_PROGRESS)
        member.sync_ticket = ticket
        self.roster.to_sync.discard(member.id)
        if not self.roster.to_sync:
            self._sync_timer.stop()
        if self.state is State.STABLE:
            self._answer_sync(member)
            self.renew(member, now)
        elif member.id == self.roster.leader_id:
            given = {entry.member_id: entry.assignment for entry in request.assignments}
            self._go(Cause.LEADER_ASSIGNS)
            self._outbox.saves.append(self)
            for one in self.members.values():
                one.assignment = bytes(given.get(one.id, b""))
                if one.sync_ticket is not None:
                    self._answer_sync(one)
                    self.renew(one, now)
        return _NONE

    def was_not_stored(self, now: float) -> None:
        """Begin a rebalance because the new assignments could not be stored, so that no member uses them."""
        if self.state in (State.COMPLETING, State.STABLE):
            for member in self.members.values():
                member.assignment = b""
            self._rebalance(Cause.NOT_STORED, now)

    # --- exceptions --------------------------------------------------------------------------------------

    def recover(self, now: float, ticket: Ticket | None = None) -> None:
        """Repair the group after an exception has left it partly changed, keeping the present members.

        Everything that is derived from the members is recomputed. The members are asked to rejoin; those that
        already wait in JoinGroup keep waiting. `ticket` identifies the request that failed. This method sends
        no response to that request, and removes a member that the request has added. A second call before the
        next generation begins removes all members, as `start_over` does.

        Raises:
            Exception: the members do not make a valid group; the caller then calls `start_over`.
        """
        if self.state is State.DEAD:
            return
        if self._is_recovering:
            self.start_over()
            return
        self._is_recovering = True
        self._take_back(ticket)
        self.roster.recompute()
        self.roster.to_sync.clear()
        self._sync_timer.stop()
        if not self.members:
            self.start_over()
            return
        for member in self.members.values():
            if member.sync_ticket is not None:
                self._answer_sync(member, ErrorCode.REBALANCE_IN_PROGRESS)
            self._timers.set(
                member.session,
                now + (NEW_MEMBER_TIMEOUT_S if member.is_new else member.session_timeout_ms / 1000),
            )
        self.roster.vote()
        self._is_first = False
        self.resume_rebalance(Bypass.REBUILT, now)
        self.go_on(now)

    def _take_back(self, ticket: Ticket | None) -> None:
        """Detach the failed request `ticket` from its member; remove the member if this request added it."""
        for member in list(self.members.values()):
            if ticket is not None and member.join_ticket is ticket:
                member.join_ticket = None
                if member.is_new:
                    del self.members[member.id]
                    member.leave_tally()
                    member.session.end()
            if ticket is not None and member.sync_ticket is ticket:
                member.sync_ticket = None

    def start_over(self) -> None:
        """Remove all members, and begin a new, empty generation. Waiting requests get UNKNOWN_MEMBER_ID.

        Clients then join as new members; committed offsets stay. This method does not read the members'
        metadata, which may be the cause of the failure.
        """
        for member_id in list(self.pending):
            self.withdraw(member_id)
        members = self.roster.clear()
        self._is_first = self._has_grown = self._is_recovering = False
        self.protocol = None
        self.bypass(Bypass.STARTED_OVER)
        self.generation = next_generation(self.generation)
        self._join_timer.stop()
        self._sync_timer.stop()
        self._outbox.saves.append(self)
        for member in members:
            if member.join_ticket is not None:
                self.refuse(member.join_ticket, "", ErrorCode.UNKNOWN_MEMBER_ID)
            if member.sync_ticket is not None:
                self._answer_sync(member, ErrorCode.UNKNOWN_MEMBER_ID)

    # --- answers -----------------------------------------------------------------------------------------

    def _wait_to_join(self, member: Member, ticket: Ticket) -> None:
        """Let a member's JoinGroup wait; answer its older one, if any, with REBALANCE_IN_PROGRESS."""
        older = self.roster.wait_to_join(member, ticket)
        if older is not None:
            self.refuse(older, member.id, ErrorCode.REBALANCE_IN_PROGRESS)

    def _answer_join(self, member: Member, response: JoinGroupResponse, ticket: Ticket) -> None:
        self.roster.stop_waiting(member)
        self._outbox.replies.append((ticket, response))

    def _update(self, member: Member, request: JoinGroupRequest, ticket: Ticket) -> None:
        self.roster.change_protocols(member, [(one.name, one.metadata) for one in request.protocols])
        member.session_timeout_ms = request.session_timeout_ms
        member.rebalance_timeout_ms = request.rebalance_timeout_ms
        self._wait_to_join(member, ticket)

    def _joined(self, member: Member, *, with_members: bool = True) -> JoinGroupResponse:
        members: list[JoinGroupResponseMember] = []
        if with_members and member.id == self.roster.leader_id:
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
            leader=self.roster.leader_id or "",
            member_id=member.id,
            members=members,
        )

    def _replaced(self, member: Member, old_leader: str | None, version: int) -> JoinGroupResponse:
        """Return the JoinGroup response for a static member that has rejoined without causing a rebalance.

        If the member leads the group, a response since version 9 asks it to skip the assignment. An older
        response names the leader's former member id, so that the member does not act as the leader.
        """
        if version >= SKIPPED_ASSIGNMENT_SINCE:
            response = self._joined(member)
            response.skip_assignment = member.id == self.roster.leader_id
            return response
        response = self._joined(member, with_members=False)
        response.leader = old_leader or ""
        return response

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

    # --- properties ----------------------------------------------------------------------------------

    @property
    def is_stable(self) -> bool:
        """Return True if the members have their assignments, and no rebalance is in progress."""
        return self.state is State.STABLE

    @property
    def is_of_consumers(self) -> bool:
        """Return True if the protocol type is `consumer`, so that the members' metadata are subscriptions."""
        return self.protocol_type == CONSUMER

    def subscribed_topics(self) -> set[str] | None:
        """Return the topics that the members subscribe to, or None if a subscription cannot be read."""
        return self.roster.subscribed_topics(self.protocol) if self.is_of_consumers else None

    @property
    def can_be_deleted(self) -> bool:
        """Return True if the group has no members."""
        return not self.refusal(RequestKind.DELETE)

    def offset_expiration(self) -> OffsetExpiration | None:
        """Return the rule by which committed offsets expire, or None if none of them may expire at present.

        In an empty group, all offsets may expire: their retention time begins when the group became empty or,
        if it never had members, with each commit. In a stable group of consumers, only offsets of topics
        without subscribers may expire.
        """
        if self.protocol_type is None:
            return OffsetExpiration()
        if self.state is State.EMPTY:
            return OffsetExpiration(since_ms=self.since_ms)
        if self.state is State.STABLE:
            topics = self.subscribed_topics()
            return None if topics is None else OffsetExpiration(subscribed_topics=frozenset(topics))
        return None

    def begin_stable(self, generation: int) -> None:
        """Begin a generation of consumers in the state Stable; the caller then sets the assignments.

        Raises:
            ValueError: the members have no protocol in common.
        """
        self.protocol_type, self.generation = CONSUMER, generation
        self.roster.leader_id = next(iter(self.members), None)
        self.protocol = self.roster.vote()
        self.bypass(Bypass.TURNED)

    def give_way(self) -> None:
        """Remove all members, because a consumer group replaces this group; waiting members must rejoin."""
        for member in self.members.values():
            if member.join_ticket is not None:
                self.refuse(member.join_ticket, member.id, ErrorCode.REBALANCE_IN_PROGRESS)
                self.roster.stop_waiting(member)
            if member.sync_ticket is not None:
                self._answer_sync(member, ErrorCode.REBALANCE_IN_PROGRESS)
        self.disband()

    def delete(self) -> None:
        """Mark the group as deleted, and withdraw member ids that were assigned but not used."""
        self._go(Cause.DELETED)
        for member_id in list(self.pending):
            self.withdraw(member_id)

    def disband(self) -> None:
        """Remove all members, in any state of the group. The group must not be used afterwards."""
        for member in list(self.members.values()):
            self._dismiss(member)
        for member_id in list(self.pending):
            self.withdraw(member_id)
        for timer in (self._join_timer, self._sync_timer):
            timer.stop()


def refused_join(member_id: str, error: ErrorCode) -> JoinGroupResponse:
    """Return the response to a refused JoinGroup request."""
    return JoinGroupResponse(error_code=error, protocol_name=None, member_id=member_id)


GENERATION_MAX = 2**31 - 1


def next_generation(generation: int) -> int:
    """Return the generation id that follows `generation`; return 1 after the largest id or a negative one."""
    return generation + 1 if 0 <= generation < GENERATION_MAX else 1
