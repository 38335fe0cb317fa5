"""Timers whose effects must be stored: a fired timer is queued, and its changes are stored later.

The timers of a coordinator fire inside of `Timers.run`, where nothing may be stored. `take` returns those
that have fired. The caller computes the changes of each fired timer, and stores and applies them. If this
fails, it calls `fire_again`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from penstock.broker.coordination.timers import Timer, Timers

RETRY_S = 1.0
"""The delay, in seconds, after which a timer fires again because its changes could not be stored."""


class FiredTimer(NamedTuple):
    """A timer that has fired. `plan` is called with the monotonic time (s) and the wall-clock time (ms).

    `plan` returns the changes to store and accept, or None if the timer has no effect any more.
    """

    timer: Timer
    plan: Callable[[float, int], Any]


class DueTimers:
    """The timers of one coordinator, and a queue of the timers that have fired."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._due: list[FiredTimer] = []

    def new(self, plan: Callable[[Timer, float, int], Any]) -> Timer:
        """Return a timer that is off. After it has fired, `plan(timer, now, now_ms)` returns its changes."""
        timer = Timer(
            lambda now: self._due.append(FiredTimer(timer, lambda at, at_ms: plan(timer, at, at_ms))),
        )
        return timer

    def set(self, timer: Timer, when: float) -> None:
        """Set the monotonic time in seconds at which a timer fires; it replaces an earlier time."""
        self._timers.set(timer, when)

    @property
    def has_due(self) -> bool:
        """True if a timer has fired that `take` has not returned yet."""
        return bool(self._due)

    def take(self) -> list[FiredTimer]:
        """Return the timers that have fired since the last call."""
        due, self._due = self._due, []
        return due

    def fire_again(self, timer: Timer, now: float) -> None:
        """Let a timer fire again soon, because its changes could not be stored."""
        self._timers.set(timer, now + RETRY_S)
