"""Write files atomically: a file is complete or absent, also after a power cut."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from penstock.common.errno_advice import reason_of
from penstock.common.operating_system import OPEN_FLAGS, sync_directory_entries
from penstock.errors import StorageError

TEMPORARY_SUFFIX = ".unfinished"


def write_whole(target: Path, write: Callable[[Path], None]) -> None:
    """Replace the file `target` atomically: `write` fills a hidden file, which is then renamed.

    The hidden file is complete and on the disk before it replaces an older `target`. If writing ends early,
    by any error in `write` too, the hidden file is removed and `target` is unchanged. The hidden name
    starts with a dot and ends in TEMPORARY_SUFFIX, so that no reader of the directory takes it for data.

    Raises:
        StorageError: the disk is full, the directory is not writable, or another operation fails.
    """
    hidden = target.with_name(f".{target.name}.{os.getpid()}{TEMPORARY_SUFFIX}")
    try:
        write(hidden)
        sync(hidden)
        hidden.replace(target)
        sync(target.parent)
    except BaseException as error:
        with suppress(OSError):
            hidden.unlink(missing_ok=True)
        if isinstance(error, OSError) and not isinstance(error, StorageError):
            raise storage_error(target, error) from error
        raise


def make_directory(directory: Path) -> None:
    """Create `directory` if it is missing.

    Raises:
        StorageError: the directory cannot be created, or is a file.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise storage_error(directory, error) from error


def remove_unfinished(directory: Path) -> int:
    """Delete the hidden files of `write_whole` that killed processes left behind; return their number."""
    leftovers = list(directory.glob(f".*{TEMPORARY_SUFFIX}"))
    for leftover in leftovers:
        leftover.unlink(missing_ok=True)
    return len(leftovers)


def storage_error(path: Path, error: OSError) -> StorageError:
    """Return the error for a failed write of `path`, with reason and advice in one line."""
    return StorageError(f"cannot write {path}: {reason_of(error)}")


def is_there(path: Path) -> bool:
    """Return whether a file exists; raise if the system cannot say.

    Raises:
        StorageError: the system refuses to look for the file.
    """
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise StorageError(f"cannot look for {path}: {reason_of(error)}") from error
    return True


def sync_directory(directory: Path) -> None:
    """Flush the names in a directory to disk; a missing directory is not an error.

    Raises:
        StorageError: the system refuses.
    """
    try:
        sync(directory)
    except FileNotFoundError:
        return
    except OSError as error:
        raise storage_error(directory, error) from error


def sync(path: Path) -> None:
    """Flush a file, or the names in a directory, to disk. Raises OSError."""
    if path.is_dir():
        sync_directory_entries(str(path))
        return
    descriptor = os.open(path, os.O_RDWR | OPEN_FLAGS)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
