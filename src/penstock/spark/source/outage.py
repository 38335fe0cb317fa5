"""The time for which a stream waits for brokers that answered before and have stopped answering."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from penstock.common.logs import logger_named
from penstock.errors import KafkaError, NetworkError, PenstockError, RequestTimeoutError

TOLD_EVERY_S = 60.0
"""The interval in seconds of the log lines of a query that waits."""

log = logger_named("penstock.spark")


class Patience(NamedTuple):
    """The time for which a task of a stream waits for brokers that do not answer."""

    outage_s: float
    """The longest wait in seconds, if this worker has reached the brokers before."""
    is_proven: bool
    """True if a task of the query has reached the brokers: then every worker waits for them."""


def is_outage(error: PenstockError) -> bool:
    """Return whether an error means that brokers do not answer, or cannot yet, rather than a mistake."""
    if isinstance(error, KafkaError):
        return error.retriable
    return isinstance(error, (NetworkError, RequestTimeoutError))


class Outage:
    """Measures an outage of the brokers. Before they have answered once, a failure is not an outage.

    `limit_s` is how long an outage may last. `report` is called with a line for the log, once a minute.
    """

    def __init__(self, servers: str, limit_s: float, report: Callable[[str], None] | None = None) -> None:
        self._servers = servers
        self._limit_s = limit_s
        self._report = report or log.warning
        self._is_reached = False
        self._since: float | None = None
        self._told_at = float("-inf")

    def is_over(self, now: float) -> None:
        """End the outage: brokers have answered, at the monotonic time `now` in seconds."""
        self._is_reached = True
        if self._since is not None:
            self._report(f"the brokers of {self._servers} answer again after {now - self._since:.0f} s")
        self._since = None
        self._told_at = float("-inf")

    def is_endured(self, error: PenstockError, now: float) -> bool:
        """Return whether to keep waiting after `error`, at the monotonic time `now` in seconds."""
        if not is_outage(error) or not self._is_reached:
            return False
        if self._since is None:
            self._since = now
        if now - self._since >= self._limit_s:
            return False
        if now - self._told_at >= TOLD_EVERY_S:
            self._told_at = now
            self._report(
                f"no broker of {self._servers} can be asked ({error}); the query waits up to "
                f"{self._limit_s:.0f} s (maxBrokerOutage), {now - self._since:.0f} s so far"
            )
        return True
