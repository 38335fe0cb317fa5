"""`Openings`: limits the share of time that the broker spends on opening logs.

The first request for a partition opens or creates its log. This takes about a millisecond, and more after a
crash, and one request may name thousands of partitions. So the time spent on openings is counted as a debt,
which shrinks in the time between openings. While the debt is `penstock.log.open.ms.max` or more, requests for
partitions whose logs are not open get NOT_LEADER_OR_FOLLOWER (6), after which clients retry. At least one log
is opened in any second, however long that takes. At most once a minute, the broker logs that requests were
refused for this reason.

A client that uses one new topic after another is not refused, because the debt shrinks while the client waits
for responses.
"""

from __future__ import annotations

from types import TracebackType

from penstock.clock import Clock
from penstock.common.logs import logger_named
from penstock.protocol.error_codes import ErrorCode, error_for

logger = logger_named("penstock.broker")

SAID_EVERY_S = 60.0
"""The minimum number of seconds between two log messages about partitions whose opening is delayed."""


class Openings:
    """A context manager around the opening of each log, which limits openings to `at_most_ms` per second."""

    def __init__(self, clock: Clock, at_most_ms: int) -> None:
        self._clock = clock
        self._at_most_s = at_most_ms / 1000
        self._unpaid_s = 0.0
        """The debt in seconds: the time spent on opening logs, reduced in proportion to the time since
        then.
        """
        self._ended = self._began = clock.monotonic()
        self._said_at: float | None = None

    def __enter__(self) -> None:
        """Begin to open a log.

        Raises:
            KafkaError: NOT_LEADER_OR_FOLLOWER (6), the time for opening logs in this second is used up.
        """
        now = self._clock.monotonic()
        self._pay_back(now)
        if self._unpaid_s >= self._at_most_s:
            self._say(now)
            raise error_for(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                "too many logs are opened at once (penstock.log.open.ms.max); ask again",
            )
        self._began = now

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended = self._clock.monotonic()
        # A debt of twice the share is down to the share after a second less the share: no log waits longer.
        self._unpaid_s = min(self._unpaid_s + self._ended - self._began, 2 * self._at_most_s)

    def _pay_back(self, now: float) -> None:
        """Reduce the debt of opening time in proportion to the time since the last opening or refusal."""
        others_s = 1 - self._at_most_s
        passed_s = now - self._ended
        self._ended = now
        if others_s <= 0 or passed_s < 0:
            self._unpaid_s = 0.0
        else:
            self._unpaid_s = max(0.0, self._unpaid_s - passed_s * self._at_most_s / others_s)

    def _say(self, now: float) -> None:
        """Log at most once a minute that opening of logs is delayed, since clients get no such message."""
        if self._said_at is not None and now - self._said_at < SAID_EVERY_S:
            return
        self._said_at = now
        logger.info(
            "many partitions are used for the first time: opening their logs takes all its share of %.0f ms "
            "in a second (penstock.log.open.ms.max); the others are answered with error 6, after which "
            "clients ask again",
            self._at_most_s * 1000,
        )
