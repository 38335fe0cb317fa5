"""Limits for connections that have not authenticated themselves yet: their number, and their time.

If there are too many, the oldest is closed. So connections that never log in do not keep out clients that log
in quickly.
"""

from __future__ import annotations

from typing import Protocol


class Closable(Protocol):
    """The interface of a connection that `LoginLimits` may close."""

    def close(self, reason: str) -> None:
        """Close the connection at once."""


class LoginLimits:
    """Allows `number_max` unauthenticated connections at a time, each for `seconds_max` seconds."""

    def __init__(self, number_max: int, seconds_max: float) -> None:
        self._number_max = number_max
        self._seconds_max = seconds_max
        self._since: dict[Closable, float] = {}
        self.evicted = 0
        """The number of connections closed because there were too many, or because their time was over."""

    def __len__(self) -> int:
        return len(self._since)

    def enter(self, connection: Closable, now: float) -> None:
        """Count a connection that begins to authenticate itself; close the oldest if there are too many."""
        if len(self._since) >= self._number_max:
            oldest = next(iter(self._since), None)
            if oldest is not None:
                self._close(
                    oldest, "too many connections have not authenticated themselves, and this is the oldest"
                )
        self._since[connection] = now

    def leave(self, connection: Closable) -> None:
        """Stop counting a connection that has authenticated itself or has ended."""
        self._since.pop(connection, None)

    def expire(self, now: float) -> None:
        """Close the connections that have been unauthenticated for more than `seconds_max` seconds."""
        reason = f"no authentication within {self._seconds_max:.0f} s (penstock.authentication.timeout.ms)"
        for connection, since in list(self._since.items()):
            if now - since < self._seconds_max:
                break
            self._close(connection, reason)

    def _close(self, connection: Closable, reason: str) -> None:
        del self._since[connection]
        self.evicted += 1
        connection.close(reason)
