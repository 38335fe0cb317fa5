"""The coordinator of classic groups: it passes each request to its group, and fires the groups' timers.

This module does no I/O. Each request comes with `now`, in seconds of the monotonic clock. The methods return
responses or, for requests that have to wait, put them into `outbox` later. Groups to be stored are put there,
too. `advance` fires the timers that are due.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from penstock.broker.coordination.timers import NEVER, Timers
from penstock.broker.groups.classic.group import ClassicGroup, refused_join
from penstock.broker.groups.classic.member import Caller, Ticket
from penstock.broker.groups.classic.outbox import GroupOutbox
from penstock.broker.groups.classic.settings import ClassicGroupSettings
from penstock.broker.groups.classic.snapshot import restore
from penstock.broker.groups.classic.states import RequestKind, State
from penstock.broker.requests.string_lengths import STRING_BYTES_MAX
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.leave_group_response import LeaveGroupResponse, MemberResponse
from penstock.protocol.messages.sync_group_response import SyncGroupResponse

if TYPE_CHECKING:
    from penstock.protocol.messages.group_metadata_value import GroupMetadataValue
    from penstock.protocol.messages.heartbeat_request import HeartbeatRequest
    from penstock.protocol.messages.join_group_request import JoinGroupRequest
    from penstock.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
    from penstock.protocol.messages.sync_group_request import SyncGroupRequest


GROUP_BYTES = 3000
"""The approximate memory of a group in bytes, without its name and its members."""


class ClassicCoordinator:
    """All classic groups of a broker. `new_id` makes a member id from a prefix.

    An exception in one group ends the request or timer that caused it. The group is repaired by `recover`,
    and other groups are not affected. `caught` is called for exceptions in timers, inside the ``except``
    block, with the name of a component and a context; without `caught` they are raised.
    """

    def __init__(
        self,
        settings: ClassicGroupSettings,
        new_id: Callable[[str], str],
        timers: Timers | None = None,
        caught: Callable[[str, str], object] | None = None,
    ) -> None:
        self.settings = settings
        self.groups: dict[str, ClassicGroup] = {}
        self.outbox: GroupOutbox[ClassicGroup] = GroupOutbox()
        self.size_bytes = 0
        """The approximate memory of all groups in bytes, without their members."""
        self.timers = Timers() if timers is None else timers
        self._new_id = new_id
        self._caught = caught

    # --- exceptions --------------------------------------------------------------------------------------

    def recover(self, group: ClassicGroup, now: float, ticket: Ticket | None = None) -> None:
        """Repair a group that an exception has left partly changed.

        `ticket` identifies the waiting request that raised the exception, if it was a request.
        """
        try:
            group.recover(now, ticket)
        except Exception:
            self._report(group)
            group.start_over()

    @contextmanager
    def _recovering(self, group: ClassicGroup, now: float, ticket: Ticket | None = None) -> Iterator[None]:
        """Run a block; if it raises, recover the group and re-raise the exception."""
        try:
            yield
        except Exception:
            self.recover(group, now, ticket)
            raise

    def _timer_failed(self, group: ClassicGroup, now: float) -> None:
        self._report(group)
        self.recover(group, now)

    def _report(self, group: ClassicGroup) -> None:
        if self._caught is None:
            raise
        self._caught("group timer", f"group {group.id!r}, which has its members join again")

    # --- time --------------------------------------------------------------------------------------------

    def advance(self, now: float) -> None:
        """Fire every timer that is due by `now`."""
        self.timers.run(now)

    def next_deadline(self) -> float | None:
        """Return the time by which `advance` must be called, or None if no timer is set."""
        when = self.timers.next_deadline()
        return None if when == NEVER else when

    # --- groups ------------------------------------------------------------------------------------------

    def create(self, group_id: str) -> ClassicGroup:
        """Add a new group without members, replacing any group with the same id."""
        group = self.build(group_id)
        self.adopt(group)
        return group

    def build(self, group_id: str) -> ClassicGroup:
        """Return a new group without members, which is not yet added to the coordinator."""
        failed = None if self._caught is None else self._timer_failed
        return ClassicGroup(group_id, self.settings, self.timers, self.outbox, self._new_id, failed)

    def adopt(self, group: ClassicGroup) -> None:
        """Add a group that `build` has returned, replacing any group with the same id."""
        self.forget(group.id)
        self.groups[group.id] = group
        self.size_bytes += GROUP_BYTES + len(group.id)

    def forget(self, group_id: str) -> None:
        """Remove the group `group_id` from memory, if it is there."""
        if self.groups.pop(group_id, None) is not None:
            self.size_bytes -= GROUP_BYTES + len(group_id)

    def restore(self, group_id: str, stored: GroupMetadataValue, now: float) -> ClassicGroup:
        """Add a group from its stored record."""
        group = self.create(group_id)
        restore(group, stored, now)
        return group

    def delete(self, group_id: str) -> ErrorCode:
        """Delete an empty group; return NONE, GROUP_ID_NOT_FOUND or NON_EMPTY_GROUP."""
        group = self.groups.get(group_id)
        if group is None:
            return ErrorCode.GROUP_ID_NOT_FOUND
        error = group.refusal(RequestKind.DELETE)
        if not error:
            group.delete()
            self.forget(group_id)
        return error

    def forget_everything(self) -> None:
        """Drop all groups, because their topic was deleted. Waiting requests get UNKNOWN_MEMBER_ID."""
        for group in self.groups.values():
            group.disband()
        self.groups.clear()
        self.size_bytes = 0

    def listed(self, states: Iterable[str] = (), types: Iterable[str] = ()) -> list[ClassicGroup]:
        """Return the groups in the given states and of the given types, ignoring case.

        An empty list of states or types matches all.
        """
        wanted_states = {state.lower() for state in states}
        wanted_types = {kind.lower() for kind in types}
        if wanted_types and CLASSIC not in wanted_types:
            return []
        return [
            group
            for group in self.groups.values()
            if not wanted_states or group.state.lower() in wanted_states
        ]

    # --- requests of members -----------------------------------------------------------------------------

    def join(self, request: JoinGroupRequest, caller: Caller, ticket: Ticket, now: float) -> None:
        """Handle JoinGroup. The response is put into `outbox`, now or later."""
        group = self.groups.get(request.group_id)
        error = check_join(request, self.settings)
        if not error and group is None and request.member_id:
            error = ErrorCode.UNKNOWN_MEMBER_ID
        if error:
            self.outbox.replies.append((ticket, refused_join(request.member_id, error)))
            return
        found = group or self.create(request.group_id)
        with self._recovering(found, now, ticket):
            found.join(request, caller, ticket, now)
        if group is None and found.state is State.EMPTY and not found.pending:
            # The member was refused, so the group need not exist.
            self.forget(found.id)

    def sync(self, request: SyncGroupRequest, ticket: Ticket, now: float) -> None:
        """Handle SyncGroup. The response is put into `outbox`, now or later."""
        group = self.groups.get(request.group_id)
        if group is None:
            missing = ErrorCode.UNKNOWN_MEMBER_ID if request.group_id else ErrorCode.INVALID_GROUP_ID
            self.outbox.replies.append((ticket, SyncGroupResponse(error_code=missing)))
        else:
            with self._recovering(group, now, ticket):
                group.sync(request, ticket, now)

    def heartbeat(self, request: HeartbeatRequest, now: float) -> ErrorCode:
        """Handle Heartbeat; return NONE, or the error for the member, such as REBALANCE_IN_PROGRESS."""
        group = self.groups.get(request.group_id)
        if group is None:
            return ErrorCode.UNKNOWN_MEMBER_ID if request.group_id else ErrorCode.INVALID_GROUP_ID
        try:
            return group.heartbeat(request.member_id, request.group_instance_id, request.generation_id, now)
        except Exception:
            self.recover(group, now)
            raise

    def leave(
        self, request: LeaveGroupRequest, identities: list[MemberIdentity], now: float
    ) -> LeaveGroupResponse:
        """Handle LeaveGroup for several members, each with its own result."""
        if not request.group_id:
            return LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
        group = self.groups.get(request.group_id)
        if group is None:
            codes = [ErrorCode.UNKNOWN_MEMBER_ID] * len(identities)
        else:
            with self._recovering(group, now):
                codes = _leave(group, identities, now)
        answers = [
            MemberResponse(member_id=one.member_id, group_instance_id=one.group_instance_id, error_code=code)
            for one, code in zip(identities, codes, strict=True)
        ]
        return LeaveGroupResponse(members=answers)


def _leave(group: ClassicGroup, identities: list[MemberIdentity], now: float) -> list[ErrorCode]:
    """Remove members of a group; return an error code, or NONE, for each."""
    size = len(group.members)
    codes = [group.leave(one.member_id, one.group_instance_id) for one in identities]
    if len(group.members) < size:
        group.members_have_gone(now)
    else:
        group.go_on(now)
    return codes


def check_join(request: JoinGroupRequest, settings: ClassicGroupSettings) -> ErrorCode:
    """Check the fields of a JoinGroup that do not depend on a group; return NONE or an error."""
    timeout_ms = request.session_timeout_ms
    if not request.group_id:
        return ErrorCode.INVALID_GROUP_ID
    if not _can_be_stored(request):
        return ErrorCode.INVALID_REQUEST
    if not settings.min_session_timeout_ms <= timeout_ms <= settings.max_session_timeout_ms:
        return ErrorCode.INVALID_SESSION_TIMEOUT
    return ErrorCode.NONE


def _can_be_stored(request: JoinGroupRequest) -> bool:
    """Return True if the names in a request fit the records of `__consumer_offsets` and old responses.

    Both limit strings to 32,767 bytes, whereas newer requests may have strings of any length.
    """
    names = [request.group_id, request.group_instance_id or "", request.protocol_type]
    names += [protocol.name for protocol in request.protocols]
    return all(len(name) * 4 <= STRING_BYTES_MAX or len(name.encode()) <= STRING_BYTES_MAX for name in names)


CLASSIC = "classic"
"""The type of classic groups in ListGroups: the group protocol that preceded KIP-848."""
