"""The file of a segment: opened on first use, and closed when the last reader has dropped it.

Only the active segment keeps its file open. The files of other segments are open only while readers use them.
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
    """The `.log` file of a segment, opened when needed."""

    __slots__ = ("_fd", "_lent", "is_writable", "kept", "path")

    def __init__(self, path: str, *, is_writable: bool) -> None:
        self.path = path
        self.is_writable = is_writable
        self.kept: OpenFile | None = None
        """The open file while this object keeps it open, else None. Callers may use it directly, without a
        call of `opened`.
        """
        self._lent: ref[OpenFile] | None = None
        self._fd = -1

    def opened(self, *, keep: bool) -> OpenFile:
        """Return the open file. It closes with its last reference: keep one while using its descriptor.

        If `keep` is True, this object keeps a reference too, until `release`.

        Raises:
            StorageError: the file cannot be opened.
        """
        file = self.kept
        if file is None:
            file = self._lent() if self._lent is not None else None
            if file is None:
                file = open_file(self.path, writable=self.is_writable)
            if keep:
                self.kept, self._fd = file, file.fileno()
            else:
                self._lent = ref(file)
        return file

    def release(self) -> None:
        """Drop the reference to the open file. It closes unless a reader uses it, and reopens when needed."""
        if self.kept is not None:
            self._lent = ref(self.kept)
        self.kept = None
        self._fd = -1

    @property
    def identity(self) -> Identity | None:
        """The device and inode of the open file, or else of the file at this path; None if neither exists."""
        return identity_of(self.path) if self._fd < 0 else identity_of(self._fd)

    def write(self, data: Bytes, size: int, position: int) -> None:
        """Write all of `data` at `position`; after a failure, remove a partly written end.

        The file is kept open.

        Raises:
            StorageError: the file cannot be written.
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
        """Truncate the file to `size` bytes.

        Raises:
            StorageError: the file cannot be truncated.
        """
        file = self.opened(keep=True)
        with storage("cut", self.path):
            os.ftruncate(file.fileno(), size)
