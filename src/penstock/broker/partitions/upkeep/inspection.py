"""A check for missing files in the data directory, which a thread makes at every start.

A log is opened when it is first used, which may be days later, or never. Without the check, a missing file
would only be noticed by an error of a reader, or by offsets that are assigned a second time.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from penstock.common.logs import logger_named

if TYPE_CHECKING:
    from penstock.common.failures import Failures

logger = logger_named("penstock.broker")


class Inspection:
    """A thread that checks the data directory once. `problems` yields descriptions of missing files."""

    def __init__(self, problems: Iterator[str], failures: Failures) -> None:
        self._problems = problems
        self._failures = failures
        self._is_over = False
        self._thread = threading.Thread(target=self._run, name="penstock-inspection", daemon=True)

    def start(self) -> None:
        """Start the thread, which logs each missing file as an error."""
        self._thread.start()

    def _run(self) -> None:
        with self._failures.barrier("inspection", "looking through the data directory"):
            for problem in self._problems:
                if self._is_over:
                    return
                if problem:
                    logger.error("%s", problem)

    def wait(self) -> None:
        """Wait until the check has ended."""
        self._thread.join()

    def stop(self) -> None:
        """Stop the check when it has finished the current partition."""
        self._is_over = True
        if self._thread.ident is not None:
            self._thread.join()
