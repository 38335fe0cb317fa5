"""An event loop whose clock jumps to the next timer when nothing else happens: minutes pass in no time.

For tests of time limits with real sockets: both ends must live on the loop. What the kernel carries between
them is there at once, so that a loop with nothing to read for `IDLE_S` is waiting for a timer.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

IDLE_S = 0.002


class _Jumping(selectors.DefaultSelector):  # type: ignore[misc, valid-type]
    """Waits a moment instead of the whole timeout, and adds up what it has left out."""

    ahead_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout <= IDLE_S:
            return super().select(timeout)
        found: list[tuple[selectors.SelectorKey, int]] = super().select(IDLE_S)
        if not found:
            self.ahead_s += timeout - IDLE_S
        return found


class JumpingLoop(asyncio.SelectorEventLoop):
    """The loop."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return super().time() + self._jumping.ahead_s


def run_jumping(coroutine: Coroutine[Any, Any, T]) -> T:
    """As `asyncio.run`, on a jumping loop."""
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        return runner.run(coroutine)
