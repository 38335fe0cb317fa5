"""Clocks: code that depends on time gets one as an argument, and never calls the operating system's clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol, cast

from penstock.errors import ConfigError


class Clock(Protocol):
    """A clock: wall-clock milliseconds since 1970 for records, monotonic seconds for deadlines."""

    def now_ms(self) -> int: ...

    def monotonic(self) -> float: ...


class SystemClock:
    """The clock of the operating system."""

    monotonic = staticmethod(time.monotonic)

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000


class ManualClock:
    """A clock that moves only by calls of `advance`, for tests and simulations."""

    def __init__(self, now_ms: int = 0) -> None:
        self._start_ms = now_ms
        self._now_ms = now_ms

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic(self) -> float:
        return (self._now_ms - self._start_ms) / 1000

    def advance(self, ms: int) -> None:
        """Move the clock forward by `ms` milliseconds.

        Raises:
            ValueError: `ms` is negative.
        """
        if ms < 0:
            raise ValueError(f"a clock cannot go back: {ms} ms")
        self._now_ms += ms


class MovableClock:
    """The operating system's clock plus an offset that `advance` increases. `stop` halts the clock."""

    def __init__(self) -> None:
        self._ahead_ms = 0
        self._ahead_s = 0.0
        self._still: tuple[int, float] | None = None
        """The wall-clock and monotonic time at which this clock was stopped; None while it runs."""
        self.when_moved: Callable[[int], None] | None = None
        """Function that `advance` calls with the milliseconds of the step, in the thread of the caller."""

    def now_ms(self) -> int:
        still = self._still
        return (time.time_ns() // 1_000_000 if still is None else still[0]) + self._ahead_ms

    def monotonic(self) -> float:
        still = self._still
        return (time.monotonic() if still is None else still[1]) + self._ahead_s

    def stop(self) -> None:
        """Stop the clock until `start` is called. Does nothing if the clock is already stopped."""
        if self._still is None:
            self._still = time.time_ns() // 1_000_000, time.monotonic()

    def start(self) -> None:
        """Let a stopped clock run on from the time at which it stopped.

        It does not jump to the system's time.
        """
        still, self._still = self._still, None
        if still is not None:
            self._ahead_ms += still[0] - time.time_ns() // 1_000_000
            self._ahead_s += still[1] - time.monotonic()

    def advance(self, ms: int = 0, *, seconds: float = 0, minutes: float = 0, hours: float = 0) -> None:
        """Move the clock forward by the sum of the arguments, and call `when_moved`.

        A broker uses `when_moved` to run the timers that are due.

        Raises:
            ValueError: the sum is negative.
        """
        step_ms = ms + round(1000 * (seconds + 60 * (minutes + 60 * hours)))
        if step_ms < 0:
            raise ValueError(f"a clock cannot go back: {step_ms} ms")
        self._ahead_ms += step_ms
        self._ahead_s += step_ms / 1000
        if self.when_moved is not None:
            self.when_moved(step_ms)


class Movable(Protocol):
    """A clock that can be moved forward with `advance`."""

    def advance(self, ms: int) -> None: ...


class Stoppable(Protocol):
    """A clock that can be stopped and started."""

    def stop(self) -> None: ...

    def start(self) -> None: ...


def movable(clock: object) -> Movable:
    """Return `clock`, which must have `advance`.

    Raises:
        ConfigError: the clock has no `advance`.
    """
    if not hasattr(clock, "advance"):
        raise ConfigError(f"{type(clock).__name__} cannot be put forward; give a MovableClock or ManualClock")
    return cast("Movable", clock)


def stoppable(clock: object) -> Stoppable:
    """Return `clock`, which must have `stop` and `start`.

    Raises:
        ConfigError: the clock lacks `stop` or `start`.
    """
    if not hasattr(clock, "stop") or not hasattr(clock, "start"):
        raise ConfigError(f"{type(clock).__name__} cannot be stopped; give a MovableClock, or none")
    return cast("Stoppable", clock)
