"""What the log asks of the file system, with failures as StorageError.

Every failure of the operating system leaves this package as a `StorageError` that names the file,
what was being done, the reason, and what may help. The system's number stays in its `errno`.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO

from penstock.common.errno_advice import reason_of
from penstock.common.logs import logger_named
from penstock.common.operating_system import OPEN_FLAGS, descriptor_limits, sync_directory_entries
from penstock.errors import StorageError

logger = logger_named("penstock.log")

FILE_MODE, DIRECTORY_MODE = 0o600, 0o700
"""Modes of what is made in a data directory: records are for the user whom the broker runs as."""


def storage_error(action: str, path: str, error: OSError) -> StorageError:
    """Return the error to raise when the system refused to `action` (a verb, "read") `path`."""
    failure = StorageError(f"cannot {action} {path}: {reason_of(error)}")
    failure.errno = error.errno
    return failure


@contextmanager
def storage(action: str, path: str) -> Iterator[None]:
    """Turn an `OSError` inside the block into a `StorageError` about `action` and `path`."""
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
"""The message for a directory or file that is not where it was."""

Identity = tuple[int, int]
"""Device and inode: what stays the same when a file or directory is moved, and differs in another's place."""


def identity_of(path: str | int) -> Identity | None:
    """Return which file or directory has a name, or is open under a number; None where there is none.

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
    """See that a name still stands for the file or directory it stood for.

    Raises:
        StorageError: it does not, or the file system fails.
    """
    if identity is None or identity_of(path) != identity:
        raise StorageError(f"{path} {GONE}")


class OpenFile(FileIO):
    """An unbuffered file that closes itself when its last user drops it.

    A segment and the regions handed out to readers share one. It is never closed by hand, so a
    descriptor cannot be closed, and its number given to another file, under a reader.
    """

    def __del__(self) -> None:
        self.close()


DESCRIPTORS_SPARE = 16
"""Descriptors below the process's limit that files which stay open leave free. What is open for a moment
needs them: a checkpoint, a directory that is listed, a module that is imported where an error is reported."""


def open_file(path: str, *, writable: bool) -> OpenFile:
    """Open a file that exists, and that stays open.

    Raises:
        StorageError: it cannot be opened, or no more than `DESCRIPTORS_SPARE` would be left.
    """
    with storage("open", path):
        file = OpenFile(path, "r+" if writable else "r")
        soft = descriptor_limits().soft
        # The system gives the lowest number that is free: this one says how many are taken.
        if soft is not None and file.fileno() >= soft - DESCRIPTORS_SPARE:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return file


def make_directory(path: str) -> None:
    """Make a directory for records, readable by its owner only, unless it is there; its parents as usual.

    Raises:
        StorageError: it cannot be made.
    """
    with storage("create", path):
        os.makedirs(path, mode=DIRECTORY_MODE, exist_ok=True)


def warn_if_others_may_read(path: str) -> None:
    """Log a warning where others than its owner may look into a directory, which is left as it is.

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
    """Make an empty file, or an existing one empty."""
    with storage("create", path):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | OPEN_FLAGS, FILE_MODE))


def read_text(path: str) -> str | None:
    """Return the text of a small file; None if there is no such file.

    Bytes that are not UTF-8 come as U+FFFD: what reads them will find them malformed.
    """
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise storage_error("read", path, error) from error


def write_text(path: str, text: str, *, sync: bool) -> None:
    """Replace a small file as a whole, as `write_whole`."""
    write_whole(path, text.encode(), sync=sync)


def write_whole(path: str, data: bytes, *, sync: bool) -> None:
    """Replace a small file as a whole: a reader, or a crash, meets the old bytes or the new.

    They are written beside it, under the name with `.tmp` behind, which replaces the old file once all is
    written. An early end of any kind removes that again and leaves the old file. With `sync` the bytes are
    on the disk before the old file goes; without, a power cut may leave none, or zeros.

    Raises:
        StorageError: it cannot be written.
    """
    fresh = path + ".tmp"
    with storage("write", path):
        try:
            fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | OPEN_FLAGS, FILE_MODE)
            try:
                written = os.write(fd, data)
                while written < len(data):
                    written += os.write(fd, data[written:])
                if sync:
                    os.fsync(fd)
            finally:
                os.close(fd)
            os.replace(fresh, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(fresh)
            raise


def remove_file(path: str) -> None:
    """Delete a file; one that is gone already is fine."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise storage_error("delete", path, error) from error


def sync_directory(path: str) -> None:
    """Make creations and renames in a directory last."""
    with storage("flush", path):
        sync_directory_entries(path)
