"""The timers of group members: sessions, and deadlines for a member's next step in a rebalance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.broker.coordination.due_timers import DueTimers
from penstock.broker.coordination.timers import NEVER, Timer

SESSION = "session"
"""The name of the timer for a member's session: the deadline for its next heartbeat."""

REVOCATION = "revocation"
"""The name of the timer for revocation: a member's deadline for giving up partitions or tasks."""


class _Entry:
    __slots__ = ("since", "timer")

    def __init__(self, timer: Timer) -> None:
        self.timer = timer
        self.since: int | None = None


class MemberTimers:
    """The timers of group members, each identified by group id, member id and timer name.

    `fence` is called with the ids of the group and the member when one of their timers has fired; it returns
    the changes that remove the member.
    """

    def __init__(self, timers: DueTimers, fence: Callable[[str, str], Any]) -> None:
        self._timers = timers
        self._fence = fence
        self._members: dict[tuple[str, str], dict[str, _Entry]] = {}

    def set(self, group_id: str, member_id: str, name: str, when: float, since: int | None = None) -> None:
        """Set the monotonic time in seconds at which a timer fires; it replaces an earlier time.

        `since` is the member epoch to which the deadline belongs: if the timer was set with this epoch
        before, its time stays unchanged.
        """
        key = group_id, member_id
        entries = self._members.get(key)
        if entries is None:
            entries = self._members[key] = {}
        entry = entries.get(name)
        if entry is None:

            def fire(timer: Timer, now: float, now_ms: int) -> Any:
                found = self._members.get(key, {}).get(name)
                if found is None or found.timer is not timer or timer.when < NEVER:
                    return None  # it has been ended, or set again in between
                return self._fence(group_id, member_id)

            entry = entries[name] = _Entry(self._timers.new(fire))
        elif since is not None and entry.since == since:
            return
        entry.since = since
        self._timers.set(entry.timer, when)

    def is_set(self, group_id: str, member_id: str, name: str) -> bool:
        """Return True if a member's timer of this name is set."""
        entry = self._members.get((group_id, member_id), {}).get(name)
        return entry is not None and entry.timer.when < NEVER

    def stop(self, group_id: str, member_id: str, *names: str) -> None:
        """Stop a member's timers of these names; they can be set again."""
        entries = self._members.get((group_id, member_id))
        if entries is not None:
            for name in names:
                entry = entries.pop(name, None)
                if entry is not None:
                    entry.timer.end()

    def end(self, group_id: str, member_id: str) -> None:
        """End all timers of a member that has left the group."""
        for entry in self._members.pop((group_id, member_id), {}).values():
            entry.timer.end()
