"""Exceptions that a barrier has stopped: each is logged with its context, and counted.

A barrier stands around every part of a broker that others do not depend on: one request, one timer, one
waiting request, one background thread. Whatever raises there ends alone. `Failures` is what all barriers
of one broker report to; `/metrics` shows its counts. An error that repeats is logged with its traceback
once a minute, so that a peer that can cause it cannot fill the log.

Raises nothing. Safe to call from any thread.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable

logger = logging.getLogger("penstock.broker")

REPEAT_S = 60.0
"""An error of the same type from the same component is logged again after so many seconds."""

KINDS_MAX = 1000
"""Kinds of errors whose last report is remembered. When there are more, all are forgotten."""


class Failures:
    """What the barriers of one broker have stopped."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self.counts: dict[str, int] = {}
        """Exceptions by component: the value of the metric `penstock_broker_exceptions_total`."""
        self._monotonic = monotonic
        self._reported: dict[tuple[str, str], tuple[float, int]] = {}
        self._lock = threading.Lock()

    def caught(self, component: str, context: str) -> None:
        """Report the exception that is being handled. Call it inside an ``except`` block.

        `component` is one of few fixed names, such as ``request`` or ``timer``; it becomes the label of
        the metric. `context` says what was done for which peer or partition, for the log.
        """
        error = sys.exc_info()[1]
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
        logger.error("%s failed: %s%s", component, context, silent, exc_info=error)
