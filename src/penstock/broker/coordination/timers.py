"""Timers: one heap of deadlines, in which a deadline can be postponed without changing the heap.

A member's session is renewed with every heartbeat, and seldom expires. So each timer has a single entry in
the heap. If its deadline has been postponed when the entry is due, the entry is inserted again with the new
deadline.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count

NEVER = float("inf")


class Timer:
    """A function that `Timers` calls at a set time.

    `when` is in seconds of the monotonic clock, `NEVER` while the timer is off. If `fire` raises, `failed` is
    called with the same time, inside the ``except`` block; `failed` repairs the object to which the timer
    belongs.
    """

    __slots__ = ("_entered_at", "failed", "fire", "when")

    def __init__(self, fire: Callable[[float], None], failed: Callable[[float], None] | None = None) -> None:
        self.fire = fire
        self.failed = failed
        self.when = NEVER
        self._entered_at = NEVER

    def stop(self) -> None:
        """Turn the timer off, until it is set again."""
        self.when = NEVER

    def end(self) -> None:
        """Turn the timer off permanently, and drop the references to `fire` and `failed` at once."""
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
        """Set the time `when` at which `run` calls `timer.fire`; it replaces the time set before."""
        timer.when = when
        if when < timer._entered_at:
            self._enter(timer)

    def next_deadline(self) -> float:
        """Return a time in seconds before which no timer fires. The next timer may fire later."""
        return self._heap[0][0] if self._heap else NEVER

    def run(self, now: float) -> None:
        """Fire all timers that are due, with the time given, the earliest first.

        If a timer with a `failed` raises, the others fire nevertheless. A timer that is set during this call
        for a time that has passed fires in the next call, so that a timer that always does this cannot keep
        the call from returning.

        Raises:
            Exception: the exception of a timer without `failed`.
        """
        for timer in self._take_due(now):
            if timer.when > now:
                continue  # a timer that fired before it has stopped or postponed it
            timer.when = NEVER
            failed = timer.failed  # read now: a timer that ends itself before it raises drops it
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
        """Drop the heap entries of timers that are off, so that they do not accumulate."""
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
"""The number of heap entries below which `_tidy` is not called."""


def _nothing(now: float) -> None:
    """Do nothing; this replaces the function of a timer that has ended."""
