"""The distance between attempts to join, and how often in a row the coordinator has refused them."""

from __future__ import annotations

from collections.abc import Callable


class Attempts:
    """Attempts of one member. Times are milliseconds of any clock that goes forward."""

    def __init__(self, backoff_ms: Callable[[int], float]) -> None:
        self._backoff_ms = backoff_ms
        self.not_before = 0.0
        """The time of the next attempt."""
        self.tries = 0
        """Failed attempts in a row: what the backoff grows with."""
        self.refusals = 0
        """Answers in a row that have not let the member in."""
        self._refused_since = 0.0

    def wait(self, now: float) -> None:
        """Postpone the next attempt by the backoff."""
        self.not_before = now + self._backoff_ms(self.tries)
        self.tries += 1

    def refused(self, now: float) -> float:
        """Count a refusal; return for how many milliseconds there have been nothing else."""
        if not self.refusals:
            self._refused_since = now
        self.refusals += 1
        return now - self._refused_since
