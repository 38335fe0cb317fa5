"""The coordinator of consumer groups: it passes each request to its group, and keeps the members' timers.

This module does no I/O. Each request comes with `now`, in seconds of the monotonic clock, and `now_ms`, in
milliseconds of the wall clock. A request or a timer results in a `ConsumerPlan`, which has the changes to
store and the response. The caller stores the changes, and then calls `accept`, which applies them. `timers`
contains the timers that have fired, each with a function that returns its `ConsumerPlan`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

from penstock.broker.coordination.due_timers import DueTimers
from penstock.broker.coordination.member_timers import REVOCATION, SESSION, MemberTimers
from penstock.broker.coordination.timers import Timer, Timers
from penstock.broker.groups.consumer.group import ConsumerGroup, Draft, Heartbeat, HeartbeatResult, Matcher
from penstock.broker.groups.consumer.state import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    Change,
    MemberState,
    SetSubscription,
    SetTarget,
    removal,
)
from penstock.broker.groups.metadata_view import TopicsView
from penstock.broker.groups.settings import ConsumerGroupSettings
from penstock.broker.groups.tables import listed, restored, size_of
from penstock.broker.requests.string_lengths import STRING_BYTES_MAX
from penstock.protocol.error_codes import ErrorCode, error_for

CONSUMER = "consumer"
"""The group type of consumer groups, and their protocol type."""

GROUP_BYTES = 3000
"""The approximate memory of a group in bytes, without its name and its members."""

SeesTopic = Callable[[str], bool]
"""A function that returns True if the client of a request is allowed to describe a topic."""


class ConsumerPlan(NamedTuple):
    """The result of a request or a timer: changes to be stored, and the response to a request.

    `touched` is the member whose session is renewed. If the plan removes members and `turns_classic` is True,
    `changes` are stored only if the conversion to a classic group fails.
    """

    group: ConsumerGroup
    draft: Draft
    settings: ConsumerGroupSettings
    """The settings of the group at the time of the request or timer."""
    answer: HeartbeatResult | None = None
    touched: str | None = None
    turns_classic: bool = False
    """True if only classic members remain after these changes, so that the group can become a classic group.
    """

    @property
    def changes(self) -> list[Change]:
        """The changes to be stored, in order."""
        return self.draft.changes


class Upgrade(NamedTuple):
    """The changes that convert a classic group to a consumer group.

    `assigns_anew` is True if the group needs a new assignment.
    """

    changes: list[Change]
    assigns_anew: bool


JOIN, SYNC = "join", "sync"
"""The timers of classic members: deadlines for JoinGroup and for SyncGroup.

`JOIN` runs from the request to rejoin until the member's JoinGroup, `SYNC` from JoinGroup to SyncGroup.
"""


class ConsumerCoordinator:
    """The coordinator of all consumer groups of a broker.

    `settings_of` returns the settings of a group by its id. `compile_regex` makes a matching function from a
    regular expression, or raises ValueError.
    """

    def __init__(
        self,
        settings_of: Callable[[str], ConsumerGroupSettings],
        view: TopicsView,
        timers: Timers,
        compile_regex: Callable[[str], Matcher],
    ) -> None:
        self.groups: dict[str, ConsumerGroup] = {}
        self.settings_of = settings_of
        self._view = view
        self.timers = DueTimers(timers)
        self._compile = compile_regex
        self._members = MemberTimers(self.timers, self._fence)
        self._regex_timers: dict[str, Timer] = {}

    @property
    def size_bytes(self) -> int:
        """Return the approximate memory, in bytes, that the groups use."""
        return size_of(self.groups, GROUP_BYTES)

    # --- requests ----------------------------------------------------------------------------------------

    def heartbeat(
        self,
        group_id: str,
        beat: Heartbeat,
        now_ms: int,
        upgrade: Callable[[], Upgrade] | None = None,
    ) -> ConsumerPlan:
        """Handle ConsumerGroupHeartbeat; return the changes to store, and the response.

        A member that joins a group that does not exist creates it. `upgrade` returns the changes that convert
        a classic group with members; it may raise GROUP_ID_NOT_FOUND.

        Raises:
            KafkaError: the error to respond with: INVALID_REQUEST (42) and UNSUPPORTED_ASSIGNOR (112) for
                invalid fields, GROUP_ID_NOT_FOUND (69), and those of `ConsumerGroup.heartbeat` and
                `ConsumerGroup.leave`.
        """
        settings = self.settings_of(group_id)
        check_heartbeat(group_id, beat, settings)
        group = self.groups.get(group_id)
        draft, assigns_anew = None, False
        if group is None:
            if beat.epoch != JOIN_EPOCH:
                raise error_for(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no consumer group {group_id}")
            group = ConsumerGroup(group_id, self._compile)
            draft = Draft(group.stored)
            if upgrade is not None:
                changes, assigns_anew = upgrade()
                draft.make(*changes)
        if beat.epoch in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH):
            draft = group.leave(beat.member_id, beat.instance_id, beat.epoch, settings, self._view)
            turns = beat.epoch == LEAVE_EPOCH and _turns_classic(group, draft, settings)
            return ConsumerPlan(
                group, draft, settings, HeartbeatResult(beat.member_id, beat.epoch), None, turns
            )
        draft, answer = group.heartbeat(beat, settings, self._view, now_ms, draft, bump=assigns_anew)
        return ConsumerPlan(group, draft, settings, answer, beat.member_id)

    def join_classic(self, group: ConsumerGroup, beat: Heartbeat, now_ms: int) -> ConsumerPlan:
        """Handle JoinGroup of a classic member; return the changes to store, and the response.

        Raises:
            KafkaError: the error to respond with, as in `ConsumerGroup.heartbeat`.
        """
        settings = self.settings_of(group.id)
        state = group.stored
        holder = state.instances.get(beat.instance_id) if beat.instance_id is not None else None
        turns = False
        if holder is not None and not state.subscriptions[holder].is_classic:
            others = state.subscriptions.keys() - {holder}
            turns = group.turns_classic(settings, others, len(state.subscriptions))
        draft, answer = group.heartbeat(beat, settings, self._view, now_ms, assigns=not turns)
        return ConsumerPlan(group, draft, settings, answer, beat.member_id, turns)

    def leave_classic(self, group: ConsumerGroup, member_ids: Collection[str]) -> ConsumerPlan:
        """Handle LeaveGroup for existing members; return the changes to store."""
        settings = self.settings_of(group.id)
        draft = group.remove(member_ids, settings, self._view)
        return ConsumerPlan(group, draft, settings, turns_classic=_turns_classic(group, draft, settings))

    def accept(self, plan: ConsumerPlan, now: float, sees: SeesTopic | None = None) -> None:
        """Apply the changes of a request or timer after they were stored.

        `sees` returns True if the client of a heartbeat may describe a topic. If regular expressions are due
        to be matched, this method sets a timer that matches them with the topics that this client may
        describe.
        """
        group, before = plan.group, plan.group.stored
        self.groups.setdefault(group.id, group)
        group.accept(plan.draft)
        settings, after = plan.settings, group.stored
        if any(isinstance(change, SetSubscription) for change in plan.changes):
            for member_id in before.subscriptions.keys() - after.subscriptions.keys():
                self._members.end(group.id, member_id)
            for member_id in [each for each in after.subscriptions if each not in before.subscriptions]:
                self.touch(group, member_id, settings, now)
        if plan.touched is not None:
            self.touch(group, plan.touched, settings, now)
        elif plan.answer is not None:  # a static member that leaves for a while has nothing more to give up
            self._members.stop(group.id, plan.answer.member_id, REVOCATION)
        if sees is not None and group.needs_refresh(settings, self._view, now):
            self._refresh_soon(group, sees, now)

    def restore(self, stored: Mapping[Any, Change | None], now: float) -> None:
        """Add the groups stored in one partition of `__consumer_offsets`. All sessions restart at `now`."""
        groups = restored(stored, lambda group_id: ConsumerGroup(group_id, self._compile))
        self.groups.update(groups)
        for group in groups.values():
            self._drop_remains(group)
            settings = self.settings_of(group.id)
            for member_id in group.stored.subscriptions:
                self.touch(group, member_id, settings, now)

    @staticmethod
    def _drop_remains(group: ConsumerGroup) -> None:
        """Drop assignments of removed members, which compaction may have left in the log."""
        state = group.stored
        for member_id in [each for each in state.currents if each not in state.subscriptions]:
            state.currents.pop(member_id)
        for member_id in [each for each in state.targets if each not in state.subscriptions]:
            state.apply(SetTarget(member_id, None))
        owners = {partition: owner for partition, owner in state.owners.items() if owner in state.currents}
        state.owners.clear()
        state.owners.update(owners)

    def forget(self, group_id: str) -> None:
        """Remove the group `group_id` from memory, if it is there."""
        group = self.groups.pop(group_id, None)
        if group is not None:
            for member_id in group.stored.subscriptions:
                self._members.end(group_id, member_id)
        waiting = self._regex_timers.pop(group_id, None)
        if waiting is not None:
            waiting.end()

    def removal(self, group: ConsumerGroup) -> list[Change]:
        """Return the changes that remove a group."""
        return removal(group.stored)

    def listed(self, states: Iterable[str] = (), types: Iterable[str] = ()) -> list[ConsumerGroup]:
        """Return the groups in the given states and of the given types, ignoring case.

        An empty list of states or types matches all.
        """
        return listed(self.groups, CONSUMER, states, types)

    # --- timers ------------------------------------------------------------------------------------------

    def awaits_join(self, group: ConsumerGroup, member_id: str, now: float) -> None:
        """Set the timer that removes a classic member if it does not rejoin within its rebalance timeout."""
        if not self._members.is_set(group.id, member_id, JOIN):
            self._set(group, member_id, JOIN, now)

    def awaits_sync(self, group: ConsumerGroup, member_id: str, now: float) -> None:
        """Set the timer that removes a classic member if it sends no SyncGroup in its rebalance timeout."""
        self._members.stop(group.id, member_id, JOIN)
        self._set(group, member_id, SYNC, now)

    def _set(
        self, group: ConsumerGroup, member_id: str, name: str, now: float, since: int | None = None
    ) -> None:
        """Set a timer that removes a member after its rebalance timeout, unless it is stopped before."""
        timeout_s = group.stored.subscriptions[member_id].rebalance_timeout_ms / 1000
        self._members.set(group.id, member_id, name, now + timeout_s, since)

    def waits_for_join(self, group: ConsumerGroup, now_ms: int) -> bool:
        """Return True if a classic member has to rejoin so that the target assignment is recomputed."""
        return group.waits_for_join(self.settings_of(group.id), self._view, now_ms)

    def has_synced(self, group: ConsumerGroup, member_id: str) -> None:
        """Stop the SyncGroup timer of a classic member that has received its assignment."""
        self._members.stop(group.id, member_id, SYNC)

    def touch(
        self, group: ConsumerGroup, member_id: str, settings: ConsumerGroupSettings, now: float
    ) -> None:
        """Renew a member's session, and set or stop its deadline for giving up partitions."""
        subscription, current = group.stored.subscriptions[member_id], group.stored.current(member_id)
        session_ms = subscription.session_timeout_ms
        if session_ms is None:
            session_ms = settings.session_timeout_ms
        self._members.set(group.id, member_id, SESSION, now + session_ms / 1000)
        if not subscription.is_classic:
            self._members.stop(group.id, member_id, JOIN, SYNC)
        if current.state is not MemberState.UNREVOKED:
            self._members.stop(group.id, member_id, REVOCATION)
        else:
            self._set(group, member_id, REVOCATION, now, current.epoch)

    def _fence(self, group_id: str, member_id: str) -> ConsumerPlan:
        """Return the changes that remove a member whose session or rebalance timeout has expired."""
        group = self.groups[group_id]
        return self.leave_classic(group, [member_id])

    def _refresh_soon(self, group: ConsumerGroup, sees: SeesTopic, now: float) -> None:
        """Set a timer that matches the regular expressions, so that no response waits for the matching."""
        waiting = self._regex_timers.get(group.id)
        if waiting is not None:
            waiting.end()
        timer = self.timers.new(partial(self._refresh, group, sees))
        self._regex_timers[group.id] = timer
        self.timers.set(timer, now)

    def _refresh(
        self, group: ConsumerGroup, sees: SeesTopic, timer: Timer, now: float, now_ms: int
    ) -> ConsumerPlan | None:
        if self._regex_timers.get(group.id) is not timer:
            return None
        return ConsumerPlan(group, group.refresh(sees, self._view, now, now_ms), self.settings_of(group.id))


def _turns_classic(group: ConsumerGroup, draft: Draft, settings: ConsumerGroupSettings) -> bool:
    left = draft.state.subscriptions
    return group.turns_classic(settings, left, len(left))


def check_heartbeat(group_id: str, beat: Heartbeat, settings: ConsumerGroupSettings) -> None:
    """Check the fields of a ConsumerGroupHeartbeat that do not depend on a group.

    Raises:
        KafkaError: INVALID_REQUEST (42) or UNSUPPORTED_ASSIGNOR (112).
    """
    problem = _problem(group_id, beat)
    if problem:
        raise error_for(ErrorCode.INVALID_REQUEST, problem)
    if beat.assignor is not None and beat.assignor not in settings.assignors:
        raise error_for(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {beat.assignor} is not supported. "
            f"Supported assignors: {', '.join(settings.assignors)}.",
        )


def _problem(group_id: str, beat: Heartbeat) -> str:
    """Return the error message for invalid fields of a ConsumerGroupHeartbeat, or an empty string."""
    if not beat.member_id.strip():
        return "MemberId can't be empty."
    if beat.epoch < STATIC_LEAVE_EPOCH:
        return f"MemberEpoch is {beat.epoch}, but must be greater than or equal to -2."
    if not group_id.strip():
        return "GroupId can't be empty."
    for field, text in (("InstanceId", beat.instance_id), ("RackId", beat.rack_id)):
        if text is not None and not text.strip():
            return f"{field} can't be empty."
    texts = [group_id, beat.member_id, beat.instance_id, beat.rack_id, beat.regex, *(beat.topics or ())]
    if any(text and len(text) * 4 > STRING_BYTES_MAX < len(text.encode()) for text in texts):
        return f"a text is longer than {STRING_BYTES_MAX} bytes, the most that can be stored"
    if beat.epoch == JOIN_EPOCH:
        if beat.rebalance_timeout_ms == -1:
            return "RebalanceTimeoutMs must be provided in first request."
        if beat.owned is None or beat.owned:
            return "TopicPartitions must be empty when (re-)joining."
        if beat.topics is None and beat.regex is None:
            return "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
    elif beat.epoch == STATIC_LEAVE_EPOCH and beat.instance_id is None:
        return "InstanceId can't be null."
    return ""
