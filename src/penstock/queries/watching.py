"""Counts that a scan reports while it reads, and a way for another thread to end it."""

from __future__ import annotations

import queue
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

from penstock.errors import PenstockError
from penstock.model import OffsetRange

T = TypeVar("T")


class Watch:
    """Counts the records and bytes that a query's scans read, keeps the first error, and can stop the scans.

    All methods are thread-safe.
    """

    def __init__(self, on_progress: Callable[[Watch], None] | None = None) -> None:
        self._lock = threading.Lock()
        self._on_progress = on_progress
        self._enders: list[Callable[[], None]] = []
        self.is_stopped = False
        self.failure: Exception | None = None
        """The first error of a scan. DuckDB and Polars replace it by errors of their own."""
        self.offsets = 0
        """Total number of offsets in the ranges that the scans will read."""
        self.records = 0
        self.wire_bytes = 0
        """Total size in bytes of the record batches that were fetched over the network."""
        self.ranges: list[OffsetRange] = []

    def planned(self, ranges: list[OffsetRange]) -> None:
        """Add the offset ranges that a scan is about to read to `ranges`, and their lengths to `offsets`."""
        with self._lock:
            self.ranges += ranges
            self.offsets += sum(one.size for one in ranges)

    def fetched(self, size_bytes: int) -> None:
        """Add `size_bytes`, the size of a fetched batch, to `wire_bytes`."""
        with self._lock:
            self.wire_bytes += size_bytes

    def decoded(self, records: int) -> None:
        """Add `records` to the count of decoded records."""
        with self._lock:
            self.records += records
        if self._on_progress is not None:
            self._on_progress(self)

    def failed(self, error: Exception) -> None:
        """Store an error in `failure`, if it is the first one."""
        with self._lock:
            if self.failure is None:
                self.failure = error

    def when_stopped(self, end: Callable[[], None]) -> None:
        """Register a function for `stop` to call; call it at once if the scans are already stopped."""
        with self._lock:
            if not self.is_stopped:
                self._enders.append(end)
                return
        end()

    def forget(self, end: Callable[[], None]) -> None:
        """Remove the function `end` from those that `stop` calls."""
        with self._lock, suppress(ValueError):
            self._enders.remove(end)

    def stop(self) -> None:
        """Stop all scans, also those that wait for a broker."""
        with self._lock:
            self.is_stopped = True
            enders, self._enders = self._enders, []
        for end in enders:
            end()


class DaemonWorker:
    """Runs calls one after another in a daemon thread. The process can exit while a call is running."""

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._end = weakref.finalize(self, self._calls.put, None)

    def run(self, work: Callable[[], T]) -> T:
        """Run `work` in the thread and return its result. On KeyboardInterrupt, `work` continues to run."""
        if self._thread is None:
            self._thread = threading.Thread(
                target=_serve, args=(self._calls,), name="penstock-sql", daemon=True
            )
            self._thread.start()
        outcome: Future[T] = Future()
        self._calls.put((outcome, work))
        return outcome.result()

    def close(self) -> None:
        """End the thread after its current call."""
        self._end()


_Call = tuple["Future[Any]", Callable[[], Any]]


def _serve(calls: queue.SimpleQueue[_Call | None]) -> None:
    while (call := calls.get()) is not None:
        outcome, work = call
        try:
            outcome.set_result(work())
        except BaseException as error:
            outcome.set_exception(error)
        del call, outcome, work  # a result lives no longer than its receiver has it


class StoppedError(PenstockError):
    """A scan was ended by another thread before it was complete."""
