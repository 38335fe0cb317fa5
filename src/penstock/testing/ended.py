"""Stores reports of brokers whose ``with`` block ended with an exception, for the failing test's report."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.common.listening.serving_thread import Served

ENDED_MAX = 5

reports: deque[tuple[str, str]] = deque(maxlen=ENDED_MAX)
"""The titles and texts of the newest reports since the start of the current test, at most `ENDED_MAX`."""


def note(served: Served) -> None:
    """Store the report of a broker or cluster whose ``with`` block is ended by an exception."""
    if not served._holds_records:
        return
    from penstock.testing.report import report_of, title_of

    reports.append((title_of(served), report_of(served)))
