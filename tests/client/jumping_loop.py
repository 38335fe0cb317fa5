"""An event loop for tests whose clock jumps to the next timer when idle, so that minutes pass at once.

It serves tests of time limits with real sockets; both ends must be on the loop. The kernel carries data
between them at once, so that a loop with nothing to read for `IDLE_S` is waiting for a timer.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

IDLE_S = 0.002


class _Jumping(selectors.DefaultSelector):  # type: ignore[misc, valid-type]
    """A selector that waits only briefly instead of the whole timeout.

    It adds up the time that it has skipped.
    """

    ahead_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout <= IDLE_S:
            return super().select(timeout)
        found: list[tuple[selectors.SelectorKey, int]] = super().select(IDLE_S)
        if not found:
            self.ahead_s += timeout - IDLE_S
        return found


class JumpingLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock includes the time that its selector has skipped."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return super().time() + self._jumping.ahead_s


def run_jumping(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on a jumping loop, like `asyncio.run`, and return its result."""
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        return runner.run(coroutine)
