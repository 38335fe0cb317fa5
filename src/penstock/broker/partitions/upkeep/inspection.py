"""What is missing in the data directory is logged at every start, by a thread that holds up no request.

A log is opened when it is first used, which may be days later, or never; and what is missing would then only
show as an error to a reader, or as offsets that are given out again.
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
    """One look through the data directory. `problems` are what it finds, one after the other."""

    def __init__(self, problems: Iterator[str], failures: Failures) -> None:
        self._problems = problems
        self._failures = failures
        self._is_over = False
        self._thread = threading.Thread(target=self._run, name="penstock-inspection", daemon=True)

    def start(self) -> None:
        """Begin; each problem becomes a line in the log."""
        self._thread.start()

    def _run(self) -> None:
        with self._failures.barrier("inspection", "looking through the data directory"):
            for problem in self._problems:
                if self._is_over:
                    return
                if problem:
                    logger.error("%s", problem)

    def wait(self) -> None:
        """Wait until all has been looked at."""
        self._thread.join()

    def stop(self) -> None:
        """End after the partition that is being looked at."""
        self._is_over = True
        if self._thread.ident is not None:
            self._thread.join()
