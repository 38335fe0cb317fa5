"""The coordinator of share groups: it passes each request to its group, and keeps the members' timers.

This module does no I/O. Each request comes with `now`, in seconds of the monotonic clock, and `now_ms`, in
milliseconds of the wall clock. A request or a timer results in a `SharePlan`, which has the changes to store
and the response. The caller stores the changes, and then calls `accept`, which applies them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from penstock.broker.coordination.due_timers import DueTimers
from penstock.broker.coordination.member_timers import SESSION, MemberTimers
from penstock.broker.coordination.timers import Timers
from penstock.broker.groups.metadata_view import TopicsView
from penstock.broker.groups.settings import ShareGroupSettings
from penstock.broker.groups.share.group import (
    Draft,
    InitializeStates,
    ShareAnswer,
    ShareGroup,
    ShareHeartbeat,
)
from penstock.broker.groups.share.state import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    Change,
    ShareInitialization,
    removal,
)
from penstock.broker.groups.tables import listed, not_of_type, restored, size_of
from penstock.broker.requests.string_lengths import STRING_BYTES_MAX
from penstock.protocol.error_codes import ErrorCode, error_for

SHARE = "share"
"""The group type of share groups, and their protocol type."""

GROUP_BYTES = 2500
"""The approximate memory of a group in bytes, without its name and its members."""

MEMBER_ID_CHARACTERS_MAX = 36


class SharePlan(NamedTuple):
    """The result of a request or a timer: changes to be stored, and the response to a request.

    `touched` is the member whose session is renewed, for `session_timeout_ms`; `initialize` has the share
    partitions to initialize once the changes are stored.
    """

    group: ShareGroup
    draft: Draft
    answer: ShareAnswer | None = None
    touched: str | None = None
    session_timeout_ms: int = 0
    initialize: InitializeStates | None = None

    @property
    def changes(self) -> list[Change]:
        """The changes to be stored, in order."""
        return self.draft.changes


class ShareGroupCoordinator:
    """All share groups of a broker. `settings_of` returns the settings of a group by its id."""

    def __init__(
        self, settings_of: Callable[[str], ShareGroupSettings], view: TopicsView, timers: Timers
    ) -> None:
        self.groups: dict[str, ShareGroup] = {}
        self.settings_of = settings_of
        self.timers = DueTimers(timers)
        self._view = view
        self._members = MemberTimers(self.timers, self._fence)

    @property
    def size_bytes(self) -> int:
        """Return the approximate memory, in bytes, that the groups use."""
        return size_of(self.groups, GROUP_BYTES)

    # --- requests ----------------------------------------------------------------------------------------

    def heartbeat(
        self, group_id: str, beat: ShareHeartbeat, now_ms: int, *, makes_group: bool = True
    ) -> SharePlan:
        """Handle ShareGroupHeartbeat; return the changes to store, and the response.

        A member that joins a group that does not exist creates it, unless `makes_group` is False.

        Raises:
            KafkaError: the error to respond with: INVALID_REQUEST (42) for invalid fields, GROUP_ID_NOT_FOUND
                (69), and those of `ShareGroup.heartbeat` and `ShareGroup.leave`.
        """
        problem = _problem(group_id, beat)
        if problem:
            raise error_for(ErrorCode.INVALID_REQUEST, problem)
        group = self.groups.get(group_id)
        if group is None:
            if beat.epoch != JOIN_EPOCH or not makes_group:
                raise error_for(
                    ErrorCode.GROUP_ID_NOT_FOUND,
                    f"Share group {group_id} not found." if makes_group else not_of_type(group_id, "share"),
                )
            group = ShareGroup(group_id)
        settings = self.settings_of(group_id)
        if beat.epoch == LEAVE_EPOCH:
            draft = group.leave(beat.member_id, settings, self._view)
            return SharePlan(group, draft, ShareAnswer(beat.member_id, beat.epoch))
        draft, answer, initialize = group.heartbeat(beat, settings, self._view, now_ms)
        return SharePlan(group, draft, answer, beat.member_id, settings.session_timeout_ms, initialize)

    def note(self, group: ShareGroup, change: ShareInitialization) -> SharePlan:
        """Return a plan that stores which share partitions are initialized, being initialized or deleted."""
        return SharePlan(group, group.note(change))

    def accept(self, plan: SharePlan, now: float, now_ms: int) -> None:
        """Apply the changes of a request or timer after they were stored."""
        group, before = plan.group, plan.group.stored
        self.groups.setdefault(group.id, group)
        group.accept(plan.draft)
        for member_id in before.members.keys() - group.stored.members.keys():
            self._members.end(group.id, member_id)
        if plan.touched is not None:
            self._touch(group, plan.touched, plan.session_timeout_ms, now)
        if plan.initialize is not None:
            group.asked_ms.update(dict.fromkeys(plan.initialize.topics, now_ms))

    def restore(self, stored: Mapping[Any, Change | None], now: float) -> None:
        """Add the groups stored in one partition of `__consumer_offsets`. All sessions restart at `now`."""
        groups = restored(stored, ShareGroup)
        self.groups.update(groups)
        for group in groups.values():
            state = group.stored
            # Compaction may leave assignments of members behind that are gone.
            for member_id in state.currents.keys() - state.members.keys():
                state.currents.pop(member_id)
            for member_id in state.targets.keys() - state.members.keys():
                state.targets.pop(member_id)
            session_ms = self.settings_of(group.id).session_timeout_ms
            for member_id in state.members:
                self._touch(group, member_id, session_ms, now)

    def forget(self, group_id: str) -> None:
        """Remove the group `group_id` from memory, if it is there."""
        group = self.groups.pop(group_id, None)
        if group is not None:
            for member_id in group.stored.members:
                self._members.end(group_id, member_id)

    def removal(self, group: ShareGroup) -> list[Change]:
        """Return the changes that remove a group."""
        return removal(group.stored)

    def listed(self, states: Iterable[str] = (), types: Iterable[str] = ()) -> list[ShareGroup]:
        """Return the groups in the given states and of the given types, ignoring case.

        An empty list of states or types matches all.
        """
        return listed(self.groups, SHARE, states, types)

    # --- sessions ----------------------------------------------------------------------------------------

    def _touch(self, group: ShareGroup, member_id: str, session_ms: int, now: float) -> None:
        """Renew the session of a member."""
        self._members.set(group.id, member_id, SESSION, now + session_ms / 1000)

    def _fence(self, group_id: str, member_id: str) -> SharePlan:
        """Return the changes that remove a member whose session has expired."""
        group = self.groups[group_id]
        return SharePlan(group, group.remove(member_id, self.settings_of(group_id), self._view))


def _problem(group_id: str, beat: ShareHeartbeat) -> str:
    """Return the error message for invalid fields of a ShareGroupHeartbeat, or an empty string."""
    if not beat.member_id.strip():
        return "MemberId can't be empty."
    if len(beat.member_id) > MEMBER_ID_CHARACTERS_MAX:
        return f"MemberId has more than {MEMBER_ID_CHARACTERS_MAX} characters."
    if not group_id.strip():
        return "GroupId can't be empty."
    if beat.epoch < LEAVE_EPOCH:
        return "MemberEpoch is invalid."
    if beat.rack_id is not None and not beat.rack_id.strip():
        return "RackId can't be empty."
    texts = [group_id, beat.rack_id, *(beat.topics or ())]
    if any(text and len(text) * 4 > STRING_BYTES_MAX < len(text.encode()) for text in texts):
        return f"a text is longer than {STRING_BYTES_MAX} bytes, the most that can be stored"
    if beat.epoch == JOIN_EPOCH and not beat.topics:
        return "SubscribedTopicNames must be set in first request."
    return ""
