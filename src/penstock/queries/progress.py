"""A progress line for a query: the number of records fetched so far, and of the records needed."""

from __future__ import annotations

import threading

from penstock.queries.watching import Watch
from penstock.tables.progress import ProgressLine


class QueryProgress:
    """Shows the progress of a query's scans, by `penstock.tables.progress`. Methods are thread-safe."""

    def __init__(self, wanted: bool | None) -> None:
        self._line = ProgressLine("query", "records", None, wanted)
        self._lock = threading.Lock()
        self._records = self._bytes = 0
        self._watch: Watch | None = None

    def update(self, watch: Watch) -> None:
        """Show the current counts of `watch` in the progress line."""
        if not self._line.is_wanted:
            return
        with self._lock:
            if watch is not self._watch:
                self._watch, self._records, self._bytes = watch, 0, 0
            self._line.total = watch.offsets or None
            self._line.add(watch.records - self._records, watch.wire_bytes - self._bytes)
            self._records, self._bytes = watch.records, watch.wire_bytes

    def end(self) -> None:
        """Remove the progress line from the terminal."""
        with self._lock:
            self._line.__exit__(None, None, None)
            self._line.is_wanted = False
