"""The coordinator of streams groups: it passes each request to its group, and keeps the groups' timers.

This module does no I/O. Each request comes with `now`, in seconds of the monotonic clock, and `now_ms`, in
milliseconds of the wall clock. A request or a timer results in a `StreamsPlan`, which has the changes to
store and the response. The caller stores the changes, and then calls `accept`, which applies them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from penstock.broker.coordination.due_timers import DueTimers
from penstock.broker.coordination.member_timers import REVOCATION, SESSION, MemberTimers
from penstock.broker.coordination.timers import Timer, Timers
from penstock.broker.groups.metadata_view import TopicsView
from penstock.broker.groups.settings import StreamsGroupSettings
from penstock.broker.groups.streams.group import Draft, StreamsAnswer, StreamsGroup, StreamsHeartbeat
from penstock.broker.groups.streams.state import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    Change,
    MemberState,
    SetOffsets,
    State,
    removal,
)
from penstock.broker.groups.tables import listed, not_of_type, restored, size_of
from penstock.broker.requests.string_lengths import STRING_BYTES_MAX
from penstock.protocol.error_codes import ErrorCode, error_for

STREAMS = "streams"
"""The group type of streams groups, and their protocol type."""

GROUP_BYTES = 3500
"""The approximate memory of a group in bytes, without its name, its members and its topology."""


class StreamsPlan(NamedTuple):
    """The result of a request or a timer: changes to be stored, and the response to a request.

    `touched` is the member whose session is renewed for `session_timeout_ms`. `shut_down_by` is a member that
    has requested the shutdown of the application. `delay_ms` is the time for which a new group waits for
    members.
    """

    group: StreamsGroup
    draft: Draft
    answer: StreamsAnswer | None = None
    touched: str | None = None
    session_timeout_ms: int = 0
    shut_down_by: str | None = None
    delay_ms: int | None = None

    @property
    def changes(self) -> list[Change]:
        """The changes to be stored, in order."""
        return [each for each in self.draft.changes if not isinstance(each, SetOffsets)]


class StreamsGroupCoordinator:
    """All streams groups of a broker. `settings_of` returns the settings of a group by its id."""

    def __init__(
        self, settings_of: Callable[[str], StreamsGroupSettings], view: TopicsView, timers: Timers
    ) -> None:
        self.groups: dict[str, StreamsGroup] = {}
        self.settings_of = settings_of
        self.timers = DueTimers(timers)
        self._view = view
        self._members = MemberTimers(self.timers, self._fence)
        self._delays: dict[str, Timer] = {}

    @property
    def size_bytes(self) -> int:
        """Return the approximate memory, in bytes, that the groups use."""
        return size_of(self.groups, GROUP_BYTES)

    # --- requests ----------------------------------------------------------------------------------------

    def heartbeat(
        self,
        group_id: str,
        beat: StreamsHeartbeat,
        now: float,
        now_ms: int,
        *,
        makes_group: bool = True,
    ) -> StreamsPlan:
        """Handle StreamsGroupHeartbeat; return the changes to store, and the response.

        A member that joins a group that does not exist creates it, unless `makes_group` is False.

        Raises:
            KafkaError: the error to respond with: INVALID_REQUEST (42) for invalid fields, GROUP_ID_NOT_FOUND
                (69), and those of `StreamsGroup.heartbeat` and `StreamsGroup.leave`.
        """
        problem = _problem(group_id, beat)
        if problem:
            raise error_for(ErrorCode.INVALID_REQUEST, problem)
        group = self.groups.get(group_id)
        if group is None:
            if beat.epoch != JOIN_EPOCH or not makes_group:
                raise error_for(
                    ErrorCode.GROUP_ID_NOT_FOUND,
                    f"Streams group {group_id} not found."
                    if makes_group
                    else not_of_type(group_id, "streams"),
                )
            group = StreamsGroup(group_id)
        shut_down_by = beat.member_id if beat.shuts_down else None
        settings = self.settings_of(group_id)
        if beat.epoch in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH):
            draft = group.leave(beat, settings)
            return StreamsPlan(
                group, draft, StreamsAnswer(beat.member_id, beat.epoch), shut_down_by=shut_down_by
            )
        left_ms = self._delay_left_ms(group_id, now)
        begins_ms = None
        if left_ms is None and not group.stored.members and settings.initial_rebalance_delay_ms > 0:
            left_ms = begins_ms = settings.initial_rebalance_delay_ms
        draft, answer = group.heartbeat(beat, settings, self._view, now_ms, left_ms)
        session_ms = settings.session_timeout_ms
        return StreamsPlan(group, draft, answer, beat.member_id, session_ms, shut_down_by, begins_ms)

    def accept(self, plan: StreamsPlan, now: float) -> None:
        """Apply the changes of a request or timer after they were stored."""
        group, before = plan.group, plan.group.stored
        self.groups.setdefault(group.id, group)
        if plan.shut_down_by is not None and group.shut_down_by is None:
            group.shut_down_by = plan.shut_down_by
        if plan.answer is not None and plan.touched is not None:
            group.endpoint_epoch = plan.answer.endpoint_epoch
        group.accept(plan.draft)
        for member_id in before.members.keys() - group.stored.members.keys():
            self._members.end(group.id, member_id)
        if plan.touched is not None:
            self._touch(group, plan.touched, now, plan.session_timeout_ms)
        elif plan.answer is not None:  # a static member that leaves for a while has nothing more to give up
            self._members.stop(group.id, plan.answer.member_id, REVOCATION)
        if plan.delay_ms is not None:
            delay = self._delays[group.id] = self.timers.new(
                lambda timer, now, now_ms: self._end_delay(group, timer, now_ms)
            )
            self.timers.set(delay, now + plan.delay_ms / 1000)

    def restore(self, stored: Mapping[Any, Change | None], now: float) -> None:
        """Add the groups stored in one partition of `__consumer_offsets`. All sessions restart at `now`."""
        groups = restored(stored, StreamsGroup)
        self.groups.update(groups)
        for group in groups.values():
            group.drop_remains()
            session_ms = self.settings_of(group.id).session_timeout_ms
            for member_id in group.stored.members:
                self._touch(group, member_id, now, session_ms)

    def forget(self, group_id: str) -> None:
        """Remove the group `group_id` from memory, if it is there."""
        group = self.groups.pop(group_id, None)
        if group is not None:
            for member_id in group.stored.members:
                self._members.end(group_id, member_id)
        delay = self._delays.pop(group_id, None)
        if delay is not None:
            delay.end()

    def removal(self, group: StreamsGroup) -> list[Change]:
        """Return the changes that remove a group."""
        return removal(group.stored)

    def listed(self, states: Iterable[str] = (), types: Iterable[str] = ()) -> list[StreamsGroup]:
        """Return the groups in the given states and of the given types, ignoring case.

        An empty list of states or types matches all. The state NotReady is also called ``not_ready``, as in
        Apache Kafka's coordinator.
        """
        wanted = {state.lower() for state in states}
        if "not_ready" in wanted:
            wanted.add(State.NOT_READY.lower())
        return listed(self.groups, STREAMS, wanted, types)

    # --- timers ------------------------------------------------------------------------------------------

    def _delay_left_ms(self, group_id: str, now: float) -> int | None:
        """Return the milliseconds for which a new group still waits for members, or None."""
        delay = self._delays.get(group_id)
        return None if delay is None else max(0, round((delay.when - now) * 1000))

    def _end_delay(self, group: StreamsGroup, timer: Timer, now_ms: int) -> StreamsPlan | None:
        """Return the changes that assign tasks after a new group's initial delay, or None without members."""
        if self._delays.get(group.id) is not timer:
            return None
        del self._delays[group.id]  # should the assignment not be stored, the next heartbeat assigns
        draft = group.assign_delayed(self.settings_of(group.id), self._view, now_ms)
        return None if draft is None else StreamsPlan(group, draft)

    def _touch(self, group: StreamsGroup, member_id: str, now: float, session_ms: int) -> None:
        """Renew a member's session, and set or stop its deadline for giving up tasks."""
        self._members.set(group.id, member_id, SESSION, now + session_ms / 1000)
        current = group.stored.current(member_id)
        if current.state is not MemberState.UNREVOKED:
            self._members.stop(group.id, member_id, REVOCATION)
        else:
            timeout_ms = max(0, group.stored.members[member_id].rebalance_timeout_ms)
            self._members.set(group.id, member_id, REVOCATION, now + timeout_ms / 1000, current.epoch)

    def _fence(self, group_id: str, member_id: str) -> StreamsPlan:
        """Return the changes that remove a member whose session or revocation deadline has expired."""
        group = self.groups[group_id]
        return StreamsPlan(group, group.remove(member_id, self.settings_of(group_id)))


def _problem(group_id: str, beat: StreamsHeartbeat) -> str:
    """Return the error message for invalid fields of a StreamsGroupHeartbeat, or an empty string."""
    if not beat.member_id.strip():
        return "MemberId can't be empty."
    if not group_id.strip():
        return "GroupId can't be empty."
    for field, text in (("InstanceId", beat.instance_id), ("RackId", beat.rack_id)):
        if text is not None and not text.strip():
            return f"{field} can't be empty."
    if beat.epoch == STATIC_LEAVE_EPOCH and beat.instance_id is None:
        return "InstanceId can't be null."
    if beat.epoch < STATIC_LEAVE_EPOCH:
        return f"MemberEpoch is {beat.epoch}, but must be greater than or equal to -2."
    if beat.epoch == JOIN_EPOCH:
        if beat.rebalance_timeout_ms == -1:
            return "RebalanceTimeoutMs must be provided in first request."
        if beat.owned:
            return "Tasks must be empty when (re-)joining."
        if beat.topology is None:
            return "Topology must be non-null when (re-)joining."
    elif beat.topology is not None:
        return "Topology can only be provided when (re-)joining."
    return _too_long(group_id, beat)


def _too_long(group_id: str, beat: StreamsHeartbeat) -> str:
    """Return the error message for an id that is too long to be stored, or an empty string."""
    texts = [group_id, beat.member_id, beat.instance_id or ""]
    if any(len(text) * 4 > STRING_BYTES_MAX < len(text.encode()) for text in texts):
        return f"a text is longer than {STRING_BYTES_MAX} bytes, the most that can be stored"
    return ""
