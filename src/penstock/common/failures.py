"""Reports of caught exceptions, and log lines that peers can cause, limited so that neither fills the log.

A barrier catches exceptions of one part of a broker on which others do not depend: one request, one timer,
one waiting request, one background thread. All barriers of a broker report to its `Failures`, whose counts
`/metrics` shows. An error that repeats is logged with its traceback once a minute. `LimitedLog` is for events
that are no errors, such as a connection that is closed for what it sent.

The methods raise nothing, and any thread may call them.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from penstock.common.logs import logger_named

REPEAT_S = 60.0
"""The seconds until an error of the same type in the same component is logged again."""

KINDS_MAX = 1000
"""The maximum number of pairs of component and error type whose last report time is stored. Beyond that, all
are dropped."""

LINES_MAX = 100
"""The maximum number of lines of one kind that a `LimitedLog` writes in a minute."""


class Failures:
    """Counts the exceptions that the barriers of one broker catch, and logs them to `logger`."""

    def __init__(self, monotonic: Callable[[], float], logger: logging.Logger | None = None) -> None:
        self.counts: dict[str, int] = {}
        """The number of caught exceptions for each component: the value of the metric
        `penstock_broker_exceptions_total`.
        """
        self._logger = logger or logger_named("penstock.broker")
        self._monotonic = monotonic
        self._reported: dict[tuple[str, str], tuple[float, int]] = {}
        self._lock = threading.Lock()

    def caught(self, component: str, context: str, error: BaseException | None = None) -> None:
        """Report the exception that is being handled. Call it inside an ``except`` block.

        `component` is one of few fixed names, such as ``request`` or ``timer``; it becomes the label of the
        metric. `context` describes the action and its peer or partition, for the log. Outside of an
        ``except`` block, pass the exception as `error`.
        """
        error = error or sys.exc_info()[1]
        kind = component, type(error).__name__
        now = self._monotonic()
        with self._lock:
            self.counts[component] = self.counts.get(component, 0) + 1
            reported = self._reported.get(kind)
            if reported is not None and now - reported[0] < REPEAT_S:
                self._reported[kind] = reported[0], reported[1] + 1
                return
            if len(self._reported) >= KINDS_MAX:
                self._reported.clear()
            self._reported[kind] = now, 0
        silent = (
            f" ({reported[1]} more of its kind since the last report)" if reported and reported[1] else ""
        )
        self._logger.error("%s failed: %s%s", component, context, silent, exc_info=error)

    @contextmanager
    def barrier(self, component: str, context: str) -> Iterator[None]:
        """Return a ``with`` block that catches exceptions and reports them.

        The arguments are those of `caught`.
        """
        try:
            yield
        except Exception:
            self.caught(component, context)


class LimitedLog:
    """Logs at most `LINES_MAX` lines of a kind a minute, then one line that says how many were left out."""

    def __init__(self, monotonic: Callable[[], float], logger: logging.Logger) -> None:
        self._monotonic = monotonic
        self._logger = logger
        self._kinds: dict[str, tuple[float, int]] = {}
        self._said: dict[str, float] = {}
        self._lock = threading.Lock()

    def once(self, level: int, message: str) -> None:
        """Log `message` unless it was logged within the last minute.

        Use it for conditions that last, such as a damaged file that clients request again and again.
        """
        now = self._monotonic()
        with self._lock:
            said = self._said.get(message)
            if said is not None and now - said < REPEAT_S:
                return
            if len(self._said) >= KINDS_MAX:
                self._said.clear()
            self._said[message] = now
        self._logger.log(level, "%s", message)

    def write(self, level: int, kind: str, message: str, *values: object) -> None:
        """Log `message` with `values`, unless there were too many lines of its `kind` within a minute.

        `kind` is one of few fixed names.
        """
        now = self._monotonic()
        with self._lock:
            began, count = self._kinds.get(kind, (now, 0))
            left_out = 0
            if now - began >= REPEAT_S:
                left_out = max(0, count - LINES_MAX)
                began, count = now, 0
            self._kinds[kind] = began, count + 1
        if left_out:
            self._logger.log(level, "%d more lines about %s were left out", left_out, kind)
        if count < LINES_MAX:
            self._logger.log(level, message, *values)
