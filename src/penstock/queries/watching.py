"""What a scan reports while it reads, and how another thread ends it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress

from penstock.errors import PenstockError
from penstock.model import OffsetRange


class Watch:
    """Counts what the scans of a query read, keeps the first error, and ends them all by `stop`.

    From any thread.
    """

    def __init__(self, on_progress: Callable[[Watch], None] | None = None) -> None:
        self._lock = threading.Lock()
        self._on_progress = on_progress
        self._enders: list[Callable[[], None]] = []
        self.is_stopped = False
        self.failure: Exception | None = None
        """The first error of a scan. Libraries that take batches make errors of their own of it."""
        self.offsets = 0
        """Offsets between the first and the last of what has been planned to be read."""
        self.records = 0
        self.wire_bytes = 0
        """Bytes of record batches that came over the network."""
        self.ranges: list[OffsetRange] = []

    def planned(self, ranges: list[OffsetRange]) -> None:
        """These ranges are about to be read."""
        with self._lock:
            self.ranges += ranges
            self.offsets += sum(one.size for one in ranges)

    def fetched(self, size_bytes: int) -> None:
        """So many bytes of batches have come."""
        with self._lock:
            self.wire_bytes += size_bytes

    def decoded(self, records: int) -> None:
        """So many records have been decoded."""
        with self._lock:
            self.records += records
        if self._on_progress is not None:
            self._on_progress(self)

    def failed(self, error: Exception) -> None:
        """Keep an error, if it is the first one."""
        with self._lock:
            if self.failure is None:
                self.failure = error

    def when_stopped(self, end: Callable[[], None]) -> None:
        """Have `end` called when the scans are to end; at once, if they are."""
        with self._lock:
            if not self.is_stopped:
                self._enders.append(end)
                return
        end()

    def forget(self, end: Callable[[], None]) -> None:
        """Do not call `end` any more."""
        with self._lock, suppress(ValueError):
            self._enders.remove(end)

    def stop(self) -> None:
        """End all scans, those that wait for a broker as well."""
        with self._lock:
            self.is_stopped = True
            enders, self._enders = self._enders, []
        for end in enders:
            end()


class StoppedError(PenstockError):
    """A scan was ended from outside while it was read."""
