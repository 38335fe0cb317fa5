"""Recovery of a classic group that an exception has left half-changed.

The exception is a fault of the broker, met by one request or one timer. The other members must not lose
their group for it, so everything that is derived from them is computed again, and they are asked to rejoin.
"""

from __future__ import annotations

from typing import Any

from penstock.broker.groups.classic.group import NEW_MEMBER_TIMEOUT_S, Group
from penstock.broker.groups.classic.member import Ticket
from penstock.broker.groups.classic.roster import next_generation
from penstock.broker.groups.classic.states import Bypass, State
from penstock.protocol.error_codes import ErrorCode


class RecoverableGroup(Group):
    """A group that a coordinator can have recovered after it has raised."""

    def __init__(self, *what: Any) -> None:
        super().__init__(*what)
        self._is_recovering = False
        """Whether an exception has ended something since the last generation began."""

    def _complete_join(self, now: float) -> None:
        super()._complete_join(now)
        if self.state is State.COMPLETING:
            self._is_recovering = False

    def recover(self, now: float, ticket: Ticket | None = None) -> None:
        """Go on with the present members after an exception has left the group half-changed.

        Everything that is derived from the members is computed again. They are asked to join again; those
        that wait for the others go on waiting. `ticket` is that of the request that failed: it gets no
        answer, and a member that it has added is removed. A group to which this happens again before its
        next generation starts over.

        Raises:
            Exception: the members do not make a group; `start_over` is what is left.
        """
        if self.state is State.DEAD:
            return
        if self._is_recovering:
            self.start_over()
            return
        self._is_recovering = True
        self._take_back(ticket)
        self._recompute()
        self._to_sync.clear()
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
        self._vote()
        self._is_first = False
        self.resume_rebalance(Bypass.REBUILT, now)
        self.go_on(now)

    def _take_back(self, ticket: Ticket | None) -> None:
        """Drop a request that has failed, and the new member that it has added."""
        for member in list(self.members.values()):
            if ticket is not None and member.join_ticket is ticket:
                member.join_ticket = None
                if member.is_new:
                    del self.members[member.id]
                    member.leave_tally()
                    member.session.end()
            if ticket is not None and member.sync_ticket is ticket:
                member.sync_ticket = None

    def _recompute(self) -> None:
        """Compute everything again that is derived from the members."""
        self.instances = {
            one.instance_id: one.id for one in self.members.values() if one.instance_id is not None
        }
        self._supported.clear()
        for member in self.members.values():
            self._count(member, 1)
        self._waiting_to_join = sum(1 for one in self.members.values() if one.join_ticket is not None)
        if self.leader_id not in self.members:
            self.leader_id = next(iter(self.members), None)

    def start_over(self) -> None:
        """Remove all members, and begin a new, empty generation. Waiting requests get UNKNOWN_MEMBER_ID.

        Clients then join as new members; committed offsets stay. Nothing here reads metadata of members.
        """
        members = list(self.members.values())
        for member_id in list(self.pending):
            self._withdraw(member_id)
        self.members, self.instances = {}, {}
        self._supported, self._to_sync = {}, set()
        self._waiting_to_join = 0
        self._is_first = self._has_grown = self._is_recovering = False
        self.leader_id = self.protocol = None
        self.bypass(Bypass.STARTED_OVER)
        self.generation = next_generation(self.generation)
        self._join_timer.stop()
        self._sync_timer.stop()
        for member in members:
            member.leave_tally()
            member.session.end()
        self._outbox.saves.append(self)
        for member in members:
            if member.join_ticket is not None:
                self._refuse(member.join_ticket, "", ErrorCode.UNKNOWN_MEMBER_ID)
            if member.sync_ticket is not None:
                self._answer_sync(member, ErrorCode.UNKNOWN_MEMBER_ID)
