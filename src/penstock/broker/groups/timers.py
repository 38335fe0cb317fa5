"""Deadlines that mostly move: one heap, in which putting a deadline off costs nothing.

A member's session is renewed with every heartbeat and runs out hardly ever. So a timer is put into the
heap once; when its entry comes up and the deadline has moved meanwhile, it goes back in.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count

NEVER = float("inf")


class Timer:
    """Something to do at a time. `when` is in seconds of the monotonic clock, `NEVER` while it is off."""

    __slots__ = ("_entered_at", "fire", "when")

    def __init__(self, fire: Callable[[float], None]) -> None:
        self.fire = fire
        self.when = NEVER
        self._entered_at = NEVER

    def stop(self) -> None:
        """Do nothing, unless it is set again."""
        self.when = NEVER


class Timers:
    """All timers of one coordinator."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Timer]] = []
        self._ticket = count()

    def __len__(self) -> int:
        return len(self._heap)

    def set(self, timer: Timer, when: float) -> None:
        """Have `timer.fire` called at `when`, and at no other time."""
        timer.when = when
        if when < timer._entered_at:
            self._enter(timer)

    def next_deadline(self) -> float:
        """No timer fires before this. Nothing may be due at it, because a deadline has moved."""
        return self._heap[0][0] if self._heap else NEVER

    def run(self, now: float) -> None:
        """Fire everything that is due, each timer with the time given, the earliest first."""
        heap = self._heap
        while heap and heap[0][0] <= now:
            entered_at, _, timer = heapq.heappop(heap)
            if entered_at != timer._entered_at:
                continue
            timer._entered_at = NEVER
            if timer.when <= now:
                timer.when = NEVER
                timer.fire(now)
            elif timer.when < NEVER:
                self._enter(timer)

    def _enter(self, timer: Timer) -> None:
        timer._entered_at = timer.when
        heapq.heappush(self._heap, (timer.when, next(self._ticket), timer))
