"""Statistics snapshots at an interval, passed to a function of the application."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.client.background_loop import is_background_loop
from penstock.common.logs import logger_named
from penstock.common.threads import in_own_thread

if TYPE_CHECKING:
    from penstock.client.statistics import Statistics

log = logger_named("penstock.client")


class StatisticsReports:
    """Calls a function with a statistics snapshot at an interval, as long as the client lives.

    Clients for asyncio call the function on their event loop, and await the result if it is awaitable.
    Blocking clients call the function in a separate thread, since one loop serves all of them: there is one
    call at a time, and a call that never returns delays only its own reports. An exception in the function is
    logged the first time, and the reports continue.
    """

    def __init__(
        self, snapshot: Callable[[], Statistics], callback: Callable[[Statistics], object], interval_ms: float
    ) -> None:
        self.failures = 0
        """The number of calls in which the application's function has raised an exception."""
        self._snapshot = snapshot
        self._callback = callback
        self._interval_s = interval_ms / 1000
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Begin the reports on the running event loop, unless they have begun."""
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    def end(self) -> None:
        """Stop the reports."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        in_thread = is_background_loop(asyncio.get_running_loop())
        while True:
            await asyncio.sleep(self._interval_s)
            try:
                stats = self._snapshot()
                made = await in_own_thread(self._callback, stats) if in_thread else self._callback(stats)
                if inspect.isawaitable(made):
                    await made
            except Exception:
                if not self.failures:
                    log.exception("the function for statistics has failed; it is called again")
                self.failures += 1
