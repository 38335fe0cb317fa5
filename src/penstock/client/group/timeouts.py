"""Timers of a group member: timeouts of requests and of the application's polls, and backoff."""

from __future__ import annotations

from collections.abc import Callable

from penstock.client.group.requests import MemberSettings

NEVER = float("inf")

JOIN_SLACK_MS = 5_000
"""The time in milliseconds that the client waits for the response to JoinGroup beyond the rebalance
timeout."""

FALLBACK_SESSION_TIMEOUT_MS = 30_000
"""The longest session timeout in milliseconds that brokers before 0.10.1 allow by default."""


class Timeouts:
    """Timeouts of a member's requests in milliseconds, computed from its settings."""

    def __init__(self, settings: MemberSettings) -> None:
        self._settings = settings
        self.session_ms = settings.session_timeout_ms
        self.has_rebalance_timeout = True
        """True if JoinGroup has a rebalance timeout (version 1 and later)."""

    @property
    def rebalance_ms(self) -> float:
        """The time that JoinGroup and SyncGroup may wait for other members, in milliseconds.

        In version 0 of JoinGroup, the session timeout is the rebalance timeout of all members.
        """
        rebalance_timeout_ms = (
            self._settings.max_poll_interval_ms
            if self.has_rebalance_timeout
            else max(self.session_ms, FALLBACK_SESSION_TIMEOUT_MS)
        )
        return max(self._settings.request_timeout_ms, rebalance_timeout_ms + JOIN_SLACK_MS)

    @property
    def heartbeat_ms(self) -> float:
        """The timeout of a Heartbeat request, in milliseconds."""
        return min(self._settings.request_timeout_ms, self.session_ms)

    def lower_session(self) -> bool:
        """Lower the session timeout to one that brokers before 0.10.1 accept; return True if it has changed.

        A timeout that the application has set is not lowered.
        """
        if not self._settings.may_lower_session_timeout or self.session_ms <= FALLBACK_SESSION_TIMEOUT_MS:
            return False
        self.session_ms = FALLBACK_SESSION_TIMEOUT_MS
        return True


class PollInterval:
    """Checks ``max.poll.interval.ms``: that the application still asks for records.

    Times are milliseconds of a monotonic clock.
    """

    def __init__(self, max_interval_ms: float) -> None:
        self._max_interval_ms = max_interval_ms
        self.awaits_poll = True
        """True if the member must do nothing before the application polls."""
        self._is_polling = False
        self._polled_at = 0.0

    def polled(self, now: float) -> None:
        """Record that the application has asked for records, so that the interval starts again."""
        self._polled_at = now
        self.awaits_poll = False

    def poll_begins(self, now: float) -> None:
        """Record that the application waits for records: the interval does not run until `poll_ends`."""
        self._is_polling = True
        self.polled(now)

    def poll_ends(self, now: float) -> None:
        """Record that a poll has returned, with or without records: the interval starts again."""
        self._is_polling = False
        self._polled_at = now

    @property
    def deadline(self) -> float:
        """The time (ms) by which the next poll must come; `NEVER` while no poll is expected."""
        if self.awaits_poll or self._is_polling:
            return NEVER
        return self._polled_at + self._max_interval_ms


class Attempts:
    """Counts a member's attempts to join: the backoff between attempts, and refusals in a row.

    Times are milliseconds of a monotonic clock.
    """

    def __init__(self, backoff_ms: Callable[[int], float]) -> None:
        self._backoff_ms = backoff_ms
        self.not_before = 0.0
        """The earliest time (ms) of the next attempt."""
        self.tries = 0
        """The number of failed attempts in a row, with which the backoff grows."""
        self.refusals = 0
        """The number of responses in a row that have refused the member."""
        self._refused_since = 0.0

    def wait(self, now: float) -> None:
        """Postpone the next attempt by a backoff that grows with each failure."""
        self.not_before = now + self._backoff_ms(self.tries)
        self.tries += 1

    def refused(self, now: float) -> float:
        """Count a refusal; return the milliseconds since the first refusal of the current series."""
        if not self.refusals:
            self._refused_since = now
        self.refusals += 1
        return now - self._refused_since
