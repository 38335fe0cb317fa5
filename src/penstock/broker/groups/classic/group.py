"""One classic group: the state machine that turns requests and the passing of time into answers.

Requests come in with `now`, in seconds of the monotonic clock; what is to be answered or stored goes into an
`Outbox`; deadlines are timers. No I/O, no clock. The states and their transitions are the tables of `states`.

The order of checks, the error codes and the timing follow Apache Kafka's classic groups, so that a
client cannot distinguish the two.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from penstock.broker.groups.classic.member import Caller, Member, Ticket, protocols_of
from penstock.broker.groups.classic.roster import CONSUMER, Roster, next_generation
from penstock.broker.groups.classic.states import (
    BYPASSES,
    REFUSALS,
    REJOINS,
    TRANSITIONS,
    Ask,
    Bypass,
    Cause,
    Rejoin,
    State,
)
from penstock.broker.groups.offsets import OffsetExpiration
from penstock.broker.groups.timers import Timer, Timers
from penstock.printable import printable
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.sync_group_response import SyncGroupResponse

if TYPE_CHECKING:
    from penstock.broker.groups.classic.outbox import Outbox
    from penstock.broker.groups.classic.settings import GroupSettings
    from penstock.protocol.messages.join_group_request import JoinGroupRequest
    from penstock.protocol.messages.sync_group_request import SyncGroupRequest

MEMBER_ID_REQUIRED_SINCE = 4
"""The version of JoinGroup since which a new member is assigned an id first (KIP-394)."""

ID_NAME_CHARACTERS_MAX = 255
"""How much of a client's name is taken into a member id.

An id is a string of at most 32,767 bytes in answers and in what is stored, and a name may be as long.
"""

JOIN_RETRY_S = 1.0
"""The least time that static members are waited for before the group checks again whether one has joined.

A member's own rebalance timeout may be 0 or negative, which would have the timer due again at once.
"""

NEW_MEMBER_TIMEOUT_S = 300.0
"""The session timeout of a member that joins for the first time, and cannot send heartbeats yet (Kafka's)."""

_NONE = ErrorCode.NONE


class Group(Roster):
    """The members of a group, its generation and its state.

    `since_ms` is the wall-clock time of the last state change that was stored, -1 if there was none.
    """

    def __init__(
        self,
        group_id: str,
        settings: GroupSettings,
        timers: Timers,
        outbox: Outbox[Group],
        new_id: Callable[[str], str],
        timer_failed: Callable[[Group, float], None] | None = None,
    ) -> None:
        """`timer_failed`, if there is one, is called inside the ``except`` block of a timer that raised."""
        failed = None if timer_failed is None else partial(timer_failed, self)
        super().__init__(group_id, timers, outbox, failed)
        self._state = State.EMPTY
        self.since_ms = -1
        self._settings = settings
        self._new_id = new_id
        self._is_first = False
        """Whether the rebalance at work has begun with an empty group."""
        self._has_grown = False
        self._delay_left_s = 0.0
        self._join_timer = Timer(self._join_time_is_up, failed)
        self._sync_timer = Timer(self._sync_time_is_up, failed)

    def __repr__(self) -> str:
        members = f"{len(self.members)} members"
        return printable(f"<Group {self.id} {self.state}, generation {self.generation}, {members}>")

    @property
    def state(self) -> State:
        """The state. `_go` and `bypass` change it, and nothing else does."""
        return self._state

    def _go(self, cause: Cause) -> None:
        """Change the state by the table of transitions.

        Raises:
            IllegalTransitionError: the state does not list the cause.
        """
        self._state = TRANSITIONS.next_state(self._state, cause)

    def bypass(self, reason: Bypass) -> None:
        """Put the group into the state that `BYPASSES` gives for `reason`, from any state."""
        self._state = BYPASSES[reason]

    def refusal(self, ask: Ask) -> ErrorCode:
        """Return the error that the state answers a request with; NONE where the request is allowed."""
        return REFUSALS.get((ask, self.state), _NONE)

    # --- JoinGroup ---------------------------------------------------------------------------------------

    def join(self, request: JoinGroupRequest, caller: Caller, ticket: Ticket, now: float) -> None:
        """JoinGroup: let a member in, or have a member take part in the rebalance at work."""
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
        """During a rebalance members that have rejoined count, so that the last to rejoin are refused."""
        size = self._settings.max_size
        if self.state is State.EMPTY:
            return True
        if self.state is State.PREPARING:
            member = self.members.get(member_id)
            return (member is not None and member.join_ticket is not None) or self._waiting_to_join < size
        return member_id in self.members or len(self.members) < size

    def accepts(self, request: JoinGroupRequest) -> bool:
        """Return whether the group still has a protocol that all members support, with a member that sends
        this request.
        """
        if self.state is State.EMPTY:
            return bool(request.protocol_type and request.protocols)
        if request.protocol_type != self.protocol_type:
            return False
        size = len(self.members)
        return any(self._supported.get(protocol.name, 0) == size for protocol in request.protocols)

    def forget_id(self, member_id: str, now: float) -> None:
        """Withdraw a member id that was assigned; a JoinGroup with it is refused from now on."""
        self._withdraw(member_id)
        if not self.members and not self.pending and not self.generation and self.state is State.EMPTY:
            self._outbox.unused.append(self)
        self.go_on(now)

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
        """Replace a static member by one with the same instance id, which has come back without its member
        id.
        """
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
            self._outbox.saves.append(self)
            self._answer_join(member, self._replaced(member, old_leader, caller.version), ticket)
        else:
            self._wait_to_join(member, ticket)
            self._rebalance(Cause.MEMBER_CHANGES, now)

    # --- members -----------------------------------------------------------------------------------------

    def _session_is_over(self, member: Member, now: float) -> None:
        waits = member.join_ticket is not None or member.sync_ticket is not None
        if self.members.get(member.id) is member and (member.is_new or not waits):
            self.expel(member, now)

    def expel(self, member: Member, now: float) -> None:
        """Remove a member, and begin a rebalance.

        Its waiting requests are answered with UNKNOWN_MEMBER_ID.
        """
        self._dismiss(member)
        self.members_have_gone(now)

    def members_have_gone(self, now: float) -> None:
        """After members were removed: begin a rebalance, or go on with the one at work."""
        if self.state in (State.STABLE, State.COMPLETING):
            self._rebalance(Cause.MEMBER_GOES, now)
        else:
            self.go_on(now)

    # --- a rebalance -------------------------------------------------------------------------------------

    def _rebalance(self, cause: Cause, now: float) -> None:
        """Ask all members to join again, and wait for them."""
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

    def resume_rebalance(self, reason: Bypass, now: float) -> None:
        """Have the members of a generation that was cut short begin another."""
        self.bypass(reason)
        self._timers.set(self._join_timer, now + self._rebalance_timeout_s())

    def _rebalance_timeout_s(self) -> float:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0) / 1000

    def go_on(self, now: float) -> None:
        """Complete the join phase, if the group is in one and no member is missing."""
        if (
            self.state is State.PREPARING
            and not self._is_first
            and self._waiting_to_join == len(self.members)
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
            self._remove(member)
        if self.members and not self._elect():
            # Only static members, none of which has rejoined: they have until their sessions end.
            self._timers.set(self._join_timer, now + max(self._rebalance_timeout_s(), JOIN_RETRY_S))
            return
        self._join_timer.stop()
        self._to_sync.clear()
        self.generation = next_generation(self.generation)
        # Stored before it is answered: after a restart no other generation may have the same number.
        self._outbox.saves.append(self)
        if not self.members:
            self.protocol = None
            self._go(Cause.NO_MEMBERS_LEFT)
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

    def _sync_time_is_up(self, now: float) -> None:
        if self._to_sync and self.state in (State.COMPLETING, State.STABLE):
            for member_id in list(self._to_sync):
                self._dismiss(self.members[member_id])
            self._rebalance(Cause.SYNC_IS_OVERDUE, now)

    # --- SyncGroup ---------------------------------------------------------------------------------------

    def sync(self, request: SyncGroupRequest, ticket: Ticket, now: float) -> None:
        """SyncGroup: answer a member with its assignment; take all assignments from the leader."""
        error = self._check_sync(request)
        if error:
            self._outbox.replies.append((ticket, SyncGroupResponse(error_code=error)))
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
            self._outbox.saves.append(self)
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
        """Begin a rebalance, because the group could not be stored: no member may act on its assignment."""
        if self.state in (State.COMPLETING, State.STABLE):
            for member in self.members.values():
                member.assignment = b""
            self._rebalance(Cause.NOT_STORED, now)

    # --- Heartbeat, LeaveGroup, OffsetCommit -------------------------------------------------------------

    def heartbeat(self, member_id: str, instance_id: str | None, generation: int, now: float) -> ErrorCode:
        """Heartbeat: renew the session of a member. Return the error to answer with."""
        error = self.check_member(member_id, instance_id)
        if error:
            return error
        if generation != self.generation:
            return ErrorCode.ILLEGAL_GENERATION
        self.renew(self.members[member_id], now)
        return self.refusal(Ask.HEARTBEAT)

    def leave(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """LeaveGroup: remove a member by its id, or, for an administrator, by its instance id alone.

        Returns the error to answer with. The caller calls `members_have_gone` once, after all that leave
        together.
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
        """OffsetCommit: return NONE, and renew the session, or return the error to answer with."""
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

    # --- properties ----------------------------------------------------------------------------------

    @property
    def is_stable(self) -> bool:
        """Whether every member has what the leader has assigned, and none is asked to join again."""
        return self.state is State.STABLE

    @property
    def can_be_deleted(self) -> bool:
        """Whether the group has no members."""
        return not self.refusal(Ask.DELETE)

    def offset_expiration(self) -> OffsetExpiration | None:
        """Return which committed offsets may expire; None while none may.

        In an empty group all of them, from the time it became empty; in a group that never had members each
        from its commit; in a stable group of consumers those of topics that no member subscribes to.
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
        """Be a stable generation of consumers with the members that were added; the caller assigns.

        Raises:
            ValueError: the members have no protocol in common.
        """
        self.protocol_type, self.generation = CONSUMER, generation
        self.leader_id = next(iter(self.members), None)
        self.protocol = self._vote()
        self.bypass(Bypass.TURNED)

    def give_way(self) -> None:
        """Have every member that waits join again, and be done with: a consumer group takes its place."""
        for member in self.members.values():
            if member.join_ticket is not None:
                self._refuse(member.join_ticket, member.id, ErrorCode.REBALANCE_IN_PROGRESS)
                member.join_ticket = None
                self._waiting_to_join -= 1
            if member.sync_ticket is not None:
                self._answer_sync(member, ErrorCode.REBALANCE_IN_PROGRESS)
        self.disband()

    def delete(self) -> None:
        """Delete the group, and withdraw the member ids that were assigned."""
        self._go(Cause.DELETED)
        for member_id in list(self.pending):
            self._withdraw(member_id)

    def disband(self) -> None:
        """Remove all members, in any state; the group must not be used any more."""
        for member in list(self.members.values()):
            self._dismiss(member)
        for member_id in list(self.pending):
            self._withdraw(member_id)
        for timer in (self._join_timer, self._sync_timer):
            timer.stop()
