"""A line that says how far a query is: what has been fetched of what it needs."""

from __future__ import annotations

import threading

from penstock.queries.watching import Watch
from penstock.tables.progress import Progress


class QueryProgress:
    """Shows what the scans of a query have read, by `penstock.tables.progress`. From any thread."""

    def __init__(self, wanted: bool | None) -> None:
        self._line = Progress("query", "records", None, wanted)
        self._lock = threading.Lock()
        self._records = self._bytes = 0
        self._watch: Watch | None = None

    def update(self, watch: Watch) -> None:
        """A scan has read more."""
        if not self._line.is_wanted:
            return
        with self._lock:
            if watch is not self._watch:
                self._watch, self._records, self._bytes = watch, 0, 0
            self._line.total = watch.offsets or None
            self._line.add(watch.records - self._records, watch.wire_bytes - self._bytes)
            self._records, self._bytes = watch.records, watch.wire_bytes

    def end(self) -> None:
        """Take the line away."""
        with self._lock:
            self._line.__exit__(None, None, None)
            self._line.is_wanted = False
