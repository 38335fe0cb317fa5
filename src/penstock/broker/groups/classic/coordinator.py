"""The requests of the classic group protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup; checks of commits.

`ClassicCoordinator` handles them for groups of both types that have members of the classic protocol: classic
groups, and consumer groups (KIP-848) in which some members still use it. The checks that both types share are
here, in the order of Apache Kafka; a group makes its own checks in the methods of the interface
`JoinableGroup`.

This module does no I/O. Each request comes with `now`, in seconds of the monotonic clock. The methods return
responses or, for requests that have to wait, put them into `outbox` later. Groups to be stored are put into
`outbox`, too. `advance` fires the timers that are due.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from penstock.broker.coordination.timers import NEVER, Timers
from penstock.broker.groups.classic.group import ClassicGroup, GroupOutbox, refused_join
from penstock.broker.groups.classic.member import Caller, Ticket, check_ids
from penstock.broker.groups.classic.records import restore
from penstock.broker.groups.classic.states import RequestKind, State
from penstock.broker.groups.settings import ClassicGroupSettings
from penstock.broker.groups.tables import listed
from penstock.broker.requests.string_lengths import STRING_BYTES_MAX
from penstock.errors import KafkaError
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.leave_group_response import LeaveGroupResponse, MemberResponse
from penstock.protocol.messages.sync_group_response import SyncGroupResponse

if TYPE_CHECKING:
    from penstock.protocol.messages.group_metadata_value import GroupMetadataValue
    from penstock.protocol.messages.heartbeat_request import HeartbeatRequest
    from penstock.protocol.messages.join_group_request import JoinGroupRequest
    from penstock.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
    from penstock.protocol.messages.sync_group_request import SyncGroupRequest

CLASSIC = "classic"
"""The group type that ListGroups returns for classic groups, whose protocol is older than KIP-848."""

MEMBER_ID_REQUIRED_SINCE = 4
"""The first version of JoinGroup in which a new member gets its id with MEMBER_ID_REQUIRED (KIP-394)."""

GROUP_BYTES = 3000
"""The approximate memory of a group in bytes, without its name and its members."""


class JoinableGroup(Protocol):
    """The interface of a group that members of the classic protocol join.

    `ClassicGroup` implements the interface for classic groups, `classic_members.ClassicMembers` for consumer
    groups.
    """

    @property
    def members(self) -> Container[str]:
        """The ids of all members."""

    @property
    def instances(self) -> Mapping[str, str]:
        """The member ids of static members, by instance id."""

    def generation_of(self, member_id: str) -> int | None:
        """Return the generation that a member's requests must contain; None if not a classic member."""

    def protocol_of(self, member_id: str) -> tuple[str | None, str | None]:
        """Return the protocol type and the protocol that a member may name in SyncGroup."""

    def has_room_for(self, member_id: str) -> bool:
        """Return True if a member may join without exceeding the group's maximum size."""

    def accepts(self, protocol_type: str, protocols: Collection[str]) -> bool:
        """Return True if all classic members support at least one of the joining member's protocols."""

    def give_id(self, request: JoinGroupRequest, caller: Caller, now: float) -> str:
        """Return a new member id, with which the client has to join."""

    def withdraw(self, member_id: str) -> bool:
        """Withdraw a member id that was assigned but not used; return True if there was such an id."""

    def refuse(self, ticket: Ticket, member_id: str, error: ErrorCode) -> None:
        """Answer a JoinGroup with an error."""

    def join(self, request: JoinGroupRequest, caller: Caller, ticket: Ticket, now: float) -> None:
        """Handle a JoinGroup that the group has room for and accepts; it is answered now or later."""

    def sync(self, request: SyncGroupRequest, ticket: Ticket, now: float) -> ErrorCode:
        """Handle SyncGroup of a member: answer it, now or later, or return the error to respond with."""

    def heartbeat(self, member_id: str, now: float) -> ErrorCode:
        """Handle Heartbeat of a member: renew its session; return the error to respond with, or NONE."""

    def leave(self, member_id: str) -> None:
        """Remove a member; `members_have_gone` is called once for all members that leave together."""

    def members_have_gone(self, now: float) -> None:
        """Rebalance, or store the removal, after `leave` was called for every member that leaves.

        Raises:
            KafkaError: the removal of the members cannot be stored.
        """

    def go_on(self, now: float) -> None:
        """Complete the join phase if it waited only for the sender of a refused request."""


class ClassicCoordinator:
    """All classic groups of a broker, and the requests of members of the classic protocol in any group.

    `new_id` makes a member id from a prefix. `consumer_group` returns the consumer group with a given id, or
    None if it does not exist or has no members.

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
        consumer_group: Callable[[str], JoinableGroup | None] = lambda group_id: None,
    ) -> None:
        self.settings = settings
        self.groups: dict[str, ClassicGroup] = {}
        self.outbox = GroupOutbox()
        self.size_bytes = 0
        """The approximate memory of all groups in bytes, without their members."""
        self.timers = Timers() if timers is None else timers
        self._new_id = new_id
        self._caught = caught
        self._consumer_group = consumer_group

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
    def _recovering(self, group: JoinableGroup, now: float, ticket: Ticket | None = None) -> Iterator[None]:
        """Run a block; if it raises, recover a classic group, and re-raise the exception."""
        try:
            yield
        except Exception:
            if isinstance(group, ClassicGroup):
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
        """Fire every timer whose deadline is at or before `now`."""
        self.timers.run(now)

    def next_deadline(self) -> float | None:
        """Return the monotonic time in seconds at which to call `advance`, or None if no timer is set."""
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
        """Add a group from its stored record, replacing any group with the same id."""
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
        return listed(self.groups, CLASSIC, states, types)

    # --- requests of members -----------------------------------------------------------------------------

    def _find(self, group_id: str) -> JoinableGroup | None:
        return self.groups.get(group_id) or self._consumer_group(group_id)

    def join(self, request: JoinGroupRequest, caller: Caller, ticket: Ticket, now: float) -> None:
        """Handle JoinGroup. The response is put into `outbox`, now or later."""
        known = self._find(request.group_id)
        error = check_join(request, self.settings)
        if not error and known is None and request.member_id:
            error = ErrorCode.UNKNOWN_MEMBER_ID
        if error:
            self.outbox.replies.append((ticket, refused_join(request.member_id, error)))
            return
        group = known or self.create(request.group_id)
        with self._recovering(group, now, ticket):
            self._join(group, request, caller, ticket, now)
        created = None if known else self.groups.get(request.group_id)
        if created is not None and created.state is State.EMPTY and not created.pending:
            # The member was refused, so the group need not exist.
            self.forget(created.id)

    def _join(
        self, group: JoinableGroup, request: JoinGroupRequest, caller: Caller, ticket: Ticket, now: float
    ) -> None:
        member_id, is_dynamic = request.member_id, request.group_instance_id is None
        if not group.has_room_for(member_id):
            group.refuse(ticket, "", ErrorCode.GROUP_MAX_SIZE_REACHED)
            if not group.withdraw(member_id) and member_id in group.members:
                group.leave(member_id)
            group.go_on(now)
        elif not group.accepts(request.protocol_type, [protocol.name for protocol in request.protocols]):
            group.refuse(ticket, member_id, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        elif not member_id and is_dynamic and caller.version >= MEMBER_ID_REQUIRED_SINCE:
            group.refuse(ticket, group.give_id(request, caller, now), ErrorCode.MEMBER_ID_REQUIRED)
        else:
            group.join(request, caller, ticket, now)

    def sync(self, request: SyncGroupRequest, ticket: Ticket, now: float) -> None:
        """Handle SyncGroup. The response is put into `outbox`, now or later."""
        group = self._find(request.group_id)
        error = _check_member(group, request)
        if group is not None and not error:
            with self._recovering(group, now, ticket):
                error = _check_protocol(group, request) or group.sync(request, ticket, now)
        if error:
            self.outbox.replies.append((ticket, SyncGroupResponse(error_code=error)))

    def heartbeat(self, request: HeartbeatRequest, now: float) -> ErrorCode:
        """Handle Heartbeat; return NONE, or the error for the member, such as REBALANCE_IN_PROGRESS."""
        group = self._find(request.group_id)
        error = _check_member(group, request)
        if group is None or error:
            return error
        try:
            return group.heartbeat(request.member_id, now)
        except Exception:
            if isinstance(group, ClassicGroup):
                self.recover(group, now)
            raise

    def leave(
        self, request: LeaveGroupRequest, identities: list[MemberIdentity], now: float
    ) -> LeaveGroupResponse:
        """Handle LeaveGroup for several members, each with its own result."""
        if not request.group_id:
            return LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
        group = self._find(request.group_id)
        codes = [ErrorCode.UNKNOWN_MEMBER_ID] * len(identities)
        if group is not None:
            try:
                with self._recovering(group, now):
                    codes = _leave(group, identities, now)
            except KafkaError as refusal:
                return LeaveGroupResponse(error_code=refusal.code)
        answers = [
            MemberResponse(member_id=one.member_id, group_instance_id=one.group_instance_id, error_code=code)
            for one, code in zip(identities, codes, strict=True)
        ]
        return LeaveGroupResponse(members=answers)

    def check_commit(
        self, group_id: str, member_id: str, instance_id: str | None, generation: int, now: float | None
    ) -> ErrorCode:
        """Check an OffsetCommit to a classic group; return NONE, or the error to respond with.

        The member's session is renewed. `now` is None for a TxnOffsetCommit, which does not renew it, and is
        allowed while the leader computes the assignment. Without a generation, a commit to a missing group is
        allowed, too.
        """
        group = self.groups.get(group_id)
        if generation < 0 and (group is None or group.can_be_deleted):
            return ErrorCode.NONE
        if group is None:
            return ErrorCode.GROUP_ID_NOT_FOUND
        error = _check_generation(group, member_id, instance_id, generation)
        if not error and now is not None:
            error = group.refusal(RequestKind.COMMIT)
            if not error:
                group.renew(group.members[member_id], now)
        return error


def _check_member(group: JoinableGroup | None, request: SyncGroupRequest | HeartbeatRequest) -> ErrorCode:
    """Check the group, the member and the generation that a request names; return NONE or an error."""
    if group is None:
        return ErrorCode.UNKNOWN_MEMBER_ID if request.group_id else ErrorCode.INVALID_GROUP_ID
    return _check_generation(group, request.member_id, request.group_instance_id, request.generation_id)


def _check_generation(
    group: JoinableGroup, member_id: str, instance_id: str | None, generation: int
) -> ErrorCode:
    error = check_ids(group.members, group.instances, member_id, instance_id)
    if error:
        return error
    present = group.generation_of(member_id)
    if present is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return ErrorCode.NONE if generation == present else ErrorCode.ILLEGAL_GENERATION


def _check_protocol(group: JoinableGroup, request: SyncGroupRequest) -> ErrorCode:
    """Check the protocol that a SyncGroup names, if it names one; return NONE or an error."""
    protocol_type, protocol = group.protocol_of(request.member_id)
    is_right = request.protocol_type in (None, protocol_type) and request.protocol_name in (None, protocol)
    return ErrorCode.NONE if is_right else ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def _leave(group: JoinableGroup, identities: list[MemberIdentity], now: float) -> list[ErrorCode]:
    """Remove members of a group; return for each member an error code, or NONE.

    An administrator names static members by only their instance ids.

    Raises:
        KafkaError: the removal of the members cannot be stored.
    """
    codes, has_lost = [], False
    for one in identities:
        member_id, error = one.member_id, ErrorCode.NONE
        if not member_id and one.group_instance_id is not None:
            member_id = group.instances.get(one.group_instance_id, "")
        if not group.withdraw(member_id):
            error = check_ids(group.members, group.instances, member_id, one.group_instance_id)
            if not error:
                group.leave(member_id)
                has_lost = True
        codes.append(error)
    if has_lost:
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

    The records and the old responses limit strings to 32,767 bytes, whereas newer requests may have strings
    of any length.
    """
    names = [request.group_id, request.group_instance_id or "", request.protocol_type]
    names += [protocol.name for protocol in request.protocols]
    return all(len(name) * 4 <= STRING_BYTES_MAX or len(name.encode()) <= STRING_BYTES_MAX for name in names)
