"""How much of the broker's time goes into opening logs.

A log is opened, or begun, by the first request that uses it: about a millisecond, and more after a crash.
One request may name thousands. So opening has a share of every second; when it is used up, partitions that
are not open yet are answered with NOT_LEADER_OR_FOLLOWER (6), after which clients come again. One log is
opened in any second, however long it takes. The broker's log says so, once a minute while it lasts.
"""

from __future__ import annotations

from types import TracebackType

from penstock.clock import Clock
from penstock.common.logs import logger_named
from penstock.protocol.error_codes import ErrorCode, error_for

logger = logger_named("penstock.broker")

PERIOD_S = 1.0

SAID_EVERY_S = 60.0
"""The least time between two lines in the broker's log about partitions that wait."""


class Openings:
    """A context manager around the opening of one log. `at_most_ms` is what may be spent in each second."""

    def __init__(self, clock: Clock, at_most_ms: int) -> None:
        self._clock = clock
        self._at_most_s = at_most_ms / 1000
        self._period_began = self._began = 0.0
        self._spent_s = 0.0
        self._said_at: float | None = None

    def __enter__(self) -> None:
        """Raises KafkaError: NOT_LEADER_OR_FOLLOWER (6), the share of this second is used up."""
        now = self._clock.monotonic()
        if not 0 <= now - self._period_began < PERIOD_S:
            self._period_began, self._spent_s = now, 0.0
        if self._spent_s >= self._at_most_s:
            self._say(now)
            raise error_for(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                "too many logs are opened at once (penstock.log.open.ms.max); ask again",
            )
        self._began = now

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        now = self._clock.monotonic()
        self._spent_s += now - self._began
        if self._spent_s >= self._at_most_s:
            # From here on others have their turn for the rest of a second.
            self._period_began = now - self._at_most_s

    def _say(self, now: float) -> None:
        """Log that partitions wait: a client only sees that its requests take long."""
        if self._said_at is not None and now - self._said_at < SAID_EVERY_S:
            return
        self._said_at = now
        logger.info(
            "many partitions are used for the first time: opening their logs has taken %.0f ms of this "
            "second, all its share (penstock.log.open.ms.max); the others are answered with error 6, after "
            "which clients ask again",
            self._spent_s * 1000,
        )
