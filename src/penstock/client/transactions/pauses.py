"""The pauses of a transactional producer between attempts. Pure arithmetic: the caller passes the time."""

from __future__ import annotations

from collections.abc import Callable

from penstock.client.cluster.retry import Backoff
from penstock.protocol.error_codes import ErrorCode

CONCURRENT_BACKOFF_MS = 20.0
"""The first pause in milliseconds after CONCURRENT_TRANSACTIONS, as in Java: the end of a transaction takes
only milliseconds.
"""


class Pauses:
    """Computes the pauses before the next attempts. `dice` returns random numbers from 0 to 1."""

    def __init__(self, backoff: Backoff, dice: Callable[[], float]) -> None:
        self._backoff = backoff
        self._short = Backoff(min(CONCURRENT_BACKOFF_MS, backoff.initial_ms), backoff.max_ms)
        self._dice = dice
        self._attempts = 0
        self.until = float("-inf")
        """The end of the pause, in monotonic seconds."""

    def after_refusal(self, code: int, now: float) -> None:
        """Begin a pause because a coordinator has answered with a retriable error."""
        is_short = code == ErrorCode.CONCURRENT_TRANSACTIONS
        self._pause(self._short if is_short else self._backoff, now)

    def after_loss(self, now: float) -> None:
        """Begin a pause because no response has come."""
        self._pause(self._backoff, now)

    def clear(self) -> None:
        """End the pause after a success, so that the next one is short again."""
        self._attempts = 0
        self.until = float("-inf")

    def _pause(self, backoff: Backoff, now: float) -> None:
        self.until = now + backoff.seconds(self._attempts, self._dice)
        self._attempts += 1
