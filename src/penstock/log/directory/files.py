"""File operations for logs; failures of the operating system raise `StorageError`.

The error names the file, the operation, the
reason, and a possible remedy. Its `errno` has the system's error number.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO

from penstock.common.errno_advice import reason_of
from penstock.common.logs import logger_named
from penstock.common.operating_system import OPEN_FLAGS, descriptor_limits, sync_directory_entries
from penstock.errors import StorageError

logger = logger_named("penstock.log")

FILE_MODE, DIRECTORY_MODE = 0o600, 0o700
"""Modes of new files and directories in a data directory: only the broker's user may read records."""


def storage_error(action: str, path: str, error: OSError) -> StorageError:
    """Return the error for a failed operation on the file `path`; `action` is a verb such as "read"."""
    failure = StorageError(f"cannot {action} {path}: {reason_of(error)}")
    failure.errno = error.errno
    return failure


@contextmanager
def storage(action: str, path: str) -> Iterator[None]:
    """Convert an `OSError` raised in the ``with`` block to a `StorageError` about `action` and `path`."""
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        raise storage_error(action, path, error) from error


GONE = (
    "was removed, moved or replaced while the broker runs; nothing more is written: put it back, or stop the "
    "broker, restore the data and start it again"
)
"""The end of an error message, with advice, for a directory or file that is no longer at its path."""

Identity = tuple[int, int]
"""The device and inode of a file. A move does not change them; another file at the same path has others."""


def identity_of(path: str | int) -> Identity | None:
    """Return the identity of the file or directory `path` (a name or descriptor), or None if it is missing.

    Raises:
        StorageError: the file system fails.
    """
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise storage_error("look at", str(path), error) from error
    return status.st_dev, status.st_ino


def check_in_place(path: str, identity: Identity | None) -> None:
    """Check that `path` is still the file or directory with this identity.

    Raises:
        StorageError: the file is missing or was replaced, or the file system fails.
    """
    if identity is None or identity_of(path) != identity:
        raise StorageError(f"{path} {GONE}")


class OpenFile(FileIO):
    """An unbuffered file that is closed when the last reference to it is dropped.

    A segment and the regions that readers hold share one. It is never closed explicitly, so a
    descriptor cannot be closed, and its number given to another file, while a reader uses it.
    """

    def __del__(self) -> None:
        self.close()


DESCRIPTORS_SPARE = 16
"""The number of file descriptors that log files must leave free. Files that are open briefly need them:
checkpoints, directories that are listed, modules imported to report an error.
"""


def open_file(path: str, *, writable: bool) -> OpenFile:
    """Open an existing file.

    Raises:
        StorageError: the file cannot be opened, or fewer than `DESCRIPTORS_SPARE` descriptors would be left.
    """
    with storage("open", path):
        file = OpenFile(path, "r+" if writable else "r")
        soft = descriptor_limits().soft
        # The system gives the lowest number that is free: this one says how many are taken.
        if soft is not None and file.fileno() >= soft - DESCRIPTORS_SPARE:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return file


def make_directory(path: str) -> None:
    """Create a directory that only its owner may read, unless it exists; parents get the usual mode.

    Raises:
        StorageError: the directory cannot be created.
    """
    with storage("create", path):
        os.makedirs(path, mode=DIRECTORY_MODE, exist_ok=True)


def warn_if_others_may_read(path: str) -> None:
    """Log a warning if users other than its owner may read a directory; do not change its mode.

    Raises:
        StorageError: the file system fails.
    """
    with storage("look at", path):
        mode = os.stat(path).st_mode & 0o777
    if mode & ~DIRECTORY_MODE:
        logger.warning(
            "%s has mode %03o: other users of this machine may read the records in it; to prevent that: "
            "chmod 700 %s",
            path,
            mode,
            path,
        )


def create_file(path: str) -> None:
    """Create an empty file, or truncate an existing one."""
    with storage("create", path):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | OPEN_FLAGS, FILE_MODE))


def read_text(path: str) -> str | None:
    """Return the text of a small file, or None if the file does not exist.

    U+FFFD replaces bytes that are not UTF-8; parsers then report the text as malformed.
    """
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise storage_error("read", path, error) from error


def write_text(path: str, text: str, *, sync: bool) -> None:
    """Replace a small file atomically by one with `text`, as `write_whole` does."""
    write_whole(path, text.encode(), sync=sync)


def write_whole(path: str, data: bytes, *, sync: bool) -> None:
    """Replace a small file atomically: readers, also after a crash, get the old bytes or the new ones.

    The bytes are written to the name with `.tmp` appended, and that file is then renamed over the old one. An
    error removes the temporary file and leaves the old one. With `sync`, the new bytes are on the disk before
    the old file is replaced. Without `sync`, a power cut may leave an empty file, or zeros.

    Raises:
        StorageError: the file cannot be written.
    """
    from penstock.common.atomic_files import write_whole_bytes  # a broker in memory starts without it

    with storage("write", path):
        write_whole_bytes(path, data, fresh=path + ".tmp", mode=FILE_MODE, sync=sync)


def remove_file(path: str) -> None:
    """Delete a file; a missing file is not an error."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise storage_error("delete", path, error) from error


def sync_directory(path: str) -> None:
    """Flush creations and renames in a directory to disk."""
    with storage("flush", path):
        sync_directory_entries(path)
