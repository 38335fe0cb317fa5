"""Flushes of logs in threads, so that the event loop and other requests do not wait for the disk.

The log of a topic with `flush.messages` or `flush.ms` is flushed in a thread; a Produce request that has to
wait for the flush is parked meanwhile. Appends made during a flush share the next flush, so that many
producers cause few flushes.

A node without an event loop has no `Flusher`: appends to its logs then flush in the calling thread.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from penstock.errors import StorageError

if TYPE_CHECKING:
    from penstock.broker.partitions.partition import Partition
    from penstock.broker.requests.purgatory import Purgatory
    from penstock.common.failures import Failures
    from penstock.log.contract import Log, PendingFlush

THREADS = 4
"""The maximum number of concurrent flushes. Each takes a thread, and more flushes would not make disks
faster.
"""


class FlushTask:
    """One flush of one log, waiting or running.

    The object itself is the purgatory key of the Produce requests that wait for the flush.
    """

    __slots__ = ("failure", "partition")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.failure: StorageError | None = None


class Flusher:
    """Flushes the logs of one broker in threads."""

    def __init__(
        self, purgatory: Purgatory, call: Callable[[Callable[[], None]], object], barriers: Failures
    ) -> None:
        """Create the threads. Any thread may use `call`, which runs a function in the broker's own thread."""
        self._purgatory = purgatory
        self._barriers = barriers
        self._call = call
        self._next: dict[Partition, FlushTask] = {}
        self._running: set[Partition] = set()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="penstock-flush")
        self.failures: list[StorageError] = []
        """The errors of flushes that have not been logged yet. The node logs them and empties the list."""

    def flush(self, partition: Partition) -> FlushTask:
        """Begin to flush all records that a log has now; return the task that requests wait for.

        Raises:
            StorageError: a file of the log cannot be opened.
        """
        flush = self._next.get(partition)
        if flush is None:
            flush = self._next[partition] = FlushTask(partition)
            if partition not in self._running:
                self._begin(partition)
        return flush

    def _begin(self, partition: Partition) -> None:
        flush = self._next.pop(partition)
        log = partition.log
        pending = log.pending_flush()
        self._threads.submit(self._run, flush, log, pending)
        self._running.add(partition)

    def _run(self, flush: FlushTask, log: Log, pending: PendingFlush) -> None:
        try:
            pending.sync()
        except StorageError as error:
            flush.failure = error
        except Exception as error:
            self._barriers.caught("flush", f"forcing {flush.partition} to disk")
            flush.failure = StorageError(f"{flush.partition} could not be forced to disk: {error!r}")
        try:
            self._call(partial(self._done, flush, log, pending))
        except RuntimeError:
            return  # the broker has stopped, which flushes everything itself

    def _done(self, flush: FlushTask, log: Log, pending: PendingFlush) -> None:
        partition = flush.partition
        self._running.discard(partition)
        try:
            if flush.failure is None:
                log.flushed(pending)
            else:
                self.failures.append(flush.failure)
        except Exception as error:
            self._barriers.caught("flush", f"noting how far {partition} is on disk")
            flush.failure = StorageError(f"{partition}: what is on disk could not be noted: {error!r}")
        finally:
            self._purgatory.notify(flush)
        waiting = self._next.get(partition)
        if waiting is not None:
            self._begin_waiting(waiting, log)

    def _begin_waiting(self, flush: FlushTask, log: Log) -> None:
        """Begin a flush that waited for another one of the log; on an error, fail the waiting requests."""
        partition = flush.partition
        try:
            if not log.is_closed:
                self._begin(partition)
                return
        except Exception as error:
            self._barriers.caught("flush", f"beginning to force {partition} to disk")
            flush.failure = StorageError(f"{partition} could not be forced to disk: {error!r}")
            self.failures.append(flush.failure)
        self._next.pop(partition, None)
        self._purgatory.notify(flush)

    def close(self) -> None:
        """Cancel the flushes that have not begun."""
        self._threads.shutdown(wait=False, cancel_futures=True)
