"""The file of a segment: opened on first use, and closed when no reader holds it any more.

Only the segment that grows holds its own: however many segments are read, no more are open than are in use.
"""

from __future__ import annotations

import os
from weakref import ref

from penstock.common import operating_system
from penstock.common.logs import logger_named
from penstock.log.contract import Bytes
from penstock.log.directory.files import Identity, OpenFile, identity_of, open_file, storage, storage_error

logger = logger_named("penstock.log")


class SegmentFile:
    """A file by its path, which is opened when needed."""

    __slots__ = ("_fd", "_file", "_lent", "is_writable", "path")

    def __init__(self, path: str, *, is_writable: bool) -> None:
        self.path = path
        self.is_writable = is_writable
        self._file: OpenFile | None = None
        self._lent: ref[OpenFile] | None = None
        self._fd = -1

    def opened(self, *, keep: bool) -> OpenFile:
        """Return the open file. It stays open while a reference is held: hold it while using its number.

        `keep` holds one here until `release`.

        Raises:
            StorageError: it cannot be opened.
        """
        file = self._file
        if file is None:
            file = self._lent() if self._lent is not None else None
            if file is None:
                file = open_file(self.path, writable=self.is_writable)
            if keep:
                self._file, self._fd = file, file.fileno()
            else:
                self._lent = ref(file)
        return file

    def release(self) -> None:
        """Let go of the file until it is needed again. Others who have it keep it."""
        if self._file is not None:
            self._lent = ref(self._file)
        self._file = None
        self._fd = -1

    @property
    def identity(self) -> Identity | None:
        """Which file is open, or has the name where none is; None where there is none."""
        return identity_of(self.path) if self._fd < 0 else identity_of(self._fd)

    def write(self, data: Bytes, size: int, position: int) -> None:
        """Write all of `data`, or nothing: what was written of it before a failure is cut off again.

        The file is kept open.

        Raises:
            StorageError: the disk refuses.
        """
        fd = self._fd if self._fd >= 0 else self.opened(keep=True).fileno()
        try:
            written = operating_system.pwrite(fd, data, position)
            while written < size:
                written += operating_system.pwrite(fd, memoryview(data)[written:], position + written)
        except OSError as error:
            try:
                os.ftruncate(fd, position)
            except OSError as second:
                # Harmless now, since the next append begins at the same position; recovery cuts it.
                logger.warning("%s keeps a torn batch at its end: %s", self.path, second)
            raise storage_error("append to", self.path, error) from error

    def cut(self, size: int) -> None:
        """Make the file `size` bytes long.

        Raises:
            StorageError: the disk refuses.
        """
        file = self.opened(keep=True)
        with storage("cut", self.path):
            os.ftruncate(file.fileno(), size)
