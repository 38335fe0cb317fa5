"""Time as an argument: what decides never asks the operating system what time it is."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Wall-clock milliseconds since 1970 for records, monotonic seconds for deadlines."""

    def now_ms(self) -> int: ...

    def monotonic(self) -> float: ...


class SystemClock:
    """The clock of this machine."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()


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
    """The clock of this machine, put forward by calls of `advance`."""

    def __init__(self) -> None:
        self._ahead_ms = 0

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000 + self._ahead_ms

    def monotonic(self) -> float:
        return time.monotonic() + self._ahead_ms / 1000

    def advance(self, ms: int) -> None:
        """Move forward by `ms` milliseconds.

        Raises:
            ValueError: `ms` is negative.
        """
        if ms < 0:
            raise ValueError(f"a clock cannot go back: {ms} ms")
        self._ahead_ms += ms
