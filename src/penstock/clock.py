"""Time as an argument: what decides never asks the operating system what time it is."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol, cast

from penstock.errors import ConfigError


class Clock(Protocol):
    """Wall-clock milliseconds since 1970 for records, monotonic seconds for deadlines."""

    def now_ms(self) -> int: ...

    def monotonic(self) -> float: ...


class SystemClock:
    """The clock of this machine."""

    monotonic = staticmethod(time.monotonic)

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000


class ManualClock:
    """A clock that moves only by calls of `advance`. For tests and simulations."""

    def __init__(self, now_ms: int = 0) -> None:
        self._start_ms = now_ms
        self._now_ms = now_ms

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic(self) -> float:
        return (self._now_ms - self._start_ms) / 1000

    def advance(self, ms: int) -> None:
        """Move forward by `ms` milliseconds.

        Raises:
            ValueError: `ms` is negative.
        """
        if ms < 0:
            raise ValueError(f"a clock cannot go back: {ms} ms")
        self._now_ms += ms


class MovableClock:
    """The clock of this machine, put forward by calls of `advance`, and stopped by `stop`."""

    def __init__(self) -> None:
        self._ahead_ms = 0
        self._ahead_s = 0.0
        self._still: tuple[int, float] | None = None
        """What the machine's clocks showed when this one was stopped."""
        self.when_moved: Callable[[int], None] | None = None
        """Called with the milliseconds after each `advance`, in the thread that advances."""

    def now_ms(self) -> int:
        still = self._still
        return (time.time_ns() // 1_000_000 if still is None else still[0]) + self._ahead_ms

    def monotonic(self) -> float:
        still = self._still
        return (time.monotonic() if still is None else still[1]) + self._ahead_s

    def stop(self) -> None:
        """Stand still until `start`. Harmless when it does."""
        if self._still is None:
            self._still = time.time_ns() // 1_000_000, time.monotonic()

    def start(self) -> None:
        """Go on from where it stood, which stays behind the machine's clock. Harmless when it goes."""
        still, self._still = self._still, None
        if still is not None:
            self._ahead_ms += still[0] - time.time_ns() // 1_000_000
            self._ahead_s += still[1] - time.monotonic()

    def advance(self, ms: int = 0, *, seconds: float = 0, minutes: float = 0, hours: float = 0) -> None:
        """Move forward by the sum of what is given; the owner of the clock does what is due by then.

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
    """A clock that can be put forward."""

    def advance(self, ms: int) -> None: ...


class Stoppable(Protocol):
    """A clock that can be stopped."""

    def stop(self) -> None: ...

    def start(self) -> None: ...


def movable(clock: object) -> Movable:
    """Return a clock as one that can be put forward.

    Raises:
        ConfigError: it cannot.
    """
    if not hasattr(clock, "advance"):
        raise ConfigError(f"{type(clock).__name__} cannot be put forward; give a MovableClock or ManualClock")
    return cast("Movable", clock)


def stoppable(clock: object) -> Stoppable:
    """Return a clock as one that can be stopped.

    Raises:
        ConfigError: it cannot.
    """
    if not hasattr(clock, "stop") or not hasattr(clock, "start"):
        raise ConfigError(f"{type(clock).__name__} cannot be stopped; give a MovableClock, or none")
    return cast("Stoppable", clock)
