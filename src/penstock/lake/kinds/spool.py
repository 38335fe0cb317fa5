"""Write Parquet files completely on this machine, then send each to a store by one request.

A store therefore never contains half a file, and a killed process leaves no unfinished upload there. The next
writer removes the files that a killed process has left on this machine.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from penstock.landing.files import FileSettings, TaskFiles
from penstock.landing.layout import TableLayout
from penstock.landing.manifest import LandedFile

PREFIX = "penstock-land-"
"""The beginning of the names of spool directories, which are in the directory for temporary files."""

EMPTY_S_MAX = 60
"""The age in seconds from which an empty, unlocked spool directory counts as left by a killed process."""

Send = Callable[[str, Path], None]
"""A function that sends a local file to a path in the table. It raises StorageError."""


class Spool:
    """The Parquet files of one commit: each is written locally, and sent to the store when complete."""

    def __init__(
        self, layout: TableLayout, batch: int, settings: FileSettings, send: Send, parent: str | None = None
    ) -> None:
        self._directory = _Directory(parent)
        self._send = send
        self._files = TaskFiles(
            self._directory.path, self._directory.path / "files", layout, f"{batch:020d}-00000", settings
        )
        self.sent: list[LandedFile] = []
        """The files that were sent to the store, including one whose upload has failed at the end."""

    def add(self, rows: pa.RecordBatch) -> None:
        """Write rows. Raises as `penstock.landing.files.TaskFiles.add`, and StorageError of a send."""
        self._take(self._files.add(rows))

    def finish(self) -> list[LandedFile]:
        """Complete and send all files; return all files sent. Raises StorageError."""
        self._take(self._files.finish())
        return self.sent

    def close(self) -> None:
        """Remove the files on this machine."""
        self._files.abandon()
        self._directory.remove()

    def _take(self, files: Iterable[LandedFile]) -> None:
        for file in files:
            here = self._directory.path / file.staged
            # Noted first: an attempt to send with an uncertain end may have made it.
            self.sent.append(LandedFile(file.path, file.path, file.rows, file.size_bytes, file.partition))
            self._send(file.path, here)
            here.unlink()


class _Directory:
    """A spool directory, locked so that other processes remove it only after this process has ended."""

    def __init__(self, parent: str | None) -> None:
        for each in _left_behind(parent or tempfile.gettempdir()):
            shutil.rmtree(each, ignore_errors=True)
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
        self._lock = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        # Another process may hold it for the moment that it takes to see that nothing is left behind here.
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def remove(self) -> None:
        if self._lock >= 0:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._lock)
            self._lock = -1


def _left_behind(parent: str) -> Iterator[Path]:
    """Yield the spool directories that killed processes have left, recognised by their released locks."""
    for each in Path(parent).glob(f"{PREFIX}*"):
        with suppress(OSError):  # another user's, or removed meanwhile
            descriptor = os.open(each, os.O_RDONLY | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # One that was made a moment ago may not have its lock yet.
                age_s = time.time() - os.fstat(descriptor).st_mtime
                if age_s > EMPTY_S_MAX or any(each.iterdir()):
                    yield each
            finally:
                os.close(descriptor)
