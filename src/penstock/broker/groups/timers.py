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
    """Something to do at a time. `when` is in seconds of the monotonic clock, `NEVER` while it is off.

    `failed` is called, with the same time, where `fire` raises; it sees to it that what the timer belongs
    to can go on.
    """

    __slots__ = ("_entered_at", "failed", "fire", "when")

    def __init__(self, fire: Callable[[float], None], failed: Callable[[float], None] | None = None) -> None:
        self.fire = fire
        self.failed = failed
        self.when = NEVER
        self._entered_at = NEVER

    def stop(self) -> None:
        """Do nothing, unless it is set again."""
        self.when = NEVER

    def end(self) -> None:
        """Do nothing ever again, and keep nothing that `fire` would need until the deadline comes up."""
        self.when = NEVER
        self.fire = _nothing
        self.failed = None


class Timers:
    """All timers of one coordinator."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Timer]] = []
        self._tidy_at = _TIDY_MIN
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
        """Fire everything that is due, each timer with the time given, the earliest first.

        A timer that raises keeps no other from firing, if it has a `failed`. A timer that was set, by
        what fires now, for a time that has passed fires in the next call: one that does so each time it
        fires cannot hold up everything else.

        Raises:
            Exception: what a timer without `failed` raised.
        """
        for timer in self._take_due(now):
            if timer.when > now:
                continue  # one that has fired before it has stopped it, or put it off
            timer.when = NEVER
            failed = timer.failed  # which is gone where the timer ends itself before it raises
            try:
                timer.fire(now)
            except Exception:
                if failed is None:
                    raise
                failed(now)

    def _take_due(self, now: float) -> list[Timer]:
        due: list[Timer] = []
        heap = self._heap
        while heap and heap[0][0] <= now:
            entered_at, _, timer = heapq.heappop(heap)
            if entered_at != timer._entered_at:
                continue
            timer._entered_at = NEVER
            if timer.when <= now:
                due.append(timer)
            elif timer.when < NEVER:
                self._enter(timer)
        return due

    def _enter(self, timer: Timer) -> None:
        if len(self._heap) >= self._tidy_at:
            self._tidy()
        timer._entered_at = timer.when
        heapq.heappush(self._heap, (timer.when, next(self._ticket), timer))

    def _tidy(self) -> None:
        """Drop the entries of timers that are off, so that they do not pile up until their time comes."""
        on = []
        for entry in self._heap:
            entered_at, _, timer = entry
            if entered_at == timer._entered_at:
                if timer.when < NEVER:
                    on.append(entry)
                else:
                    timer._entered_at = NEVER
        heapq.heapify(on)
        self._heap[:] = on
        self._tidy_at = max(_TIDY_MIN, 2 * len(on))


_TIDY_MIN = 128
"""Entries that are never looked through."""


def _nothing(now: float) -> None:
    """What a timer does that has ended."""
