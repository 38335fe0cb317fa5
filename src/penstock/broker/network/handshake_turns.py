"""Limits the time per event-loop turn that TLS handshakes take, so that other work is not held up.

The first message of a client costs the broker a signature and a key exchange, up to a millisecond of CPU. A
thousand such messages at once would hold up everything else for a second. So handshakes are queued in order
of arrival, and each turn of the loop handles as many as fit into `TURN_S`.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

TURN_S = 0.005
"""The time in seconds for which handshakes may occupy one turn of the event loop."""


class HandshakeTurns:
    """The queue of one server's TLS handshakes, bounded by `penstock.unauthenticated.connections.max`."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[Callable[[], None]] = deque()
        self._ends_at: float | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def run(self, handshake: Callable[[], None]) -> bool:
        """Run `handshake` now and return True, or queue it for a later turn of the loop and return False.

        `handshake` must not raise.
        """
        now = self._loop.time()
        if self._ends_at is None:
            self._ends_at = now + TURN_S
            self._loop.call_soon(self._begin_turn)
        if self._waiting or now >= self._ends_at:
            self._waiting.append(handshake)
            return False
        handshake()
        return True

    def _begin_turn(self) -> None:
        """Begin a new turn of the loop: run waiting handshakes for `TURN_S`."""
        if not self._waiting:
            self._ends_at = None
            return
        self._loop.call_soon(self._begin_turn)
        self._ends_at = self._loop.time() + TURN_S
        while self._waiting and self._loop.time() < self._ends_at:
            self._waiting.popleft()()
