"""Files that are there whole or not at all, also after a power cut."""

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
    """Let `write` fill a hidden file beside `target`, then give it the name of `target`.

    Replaces what had that name before, once all is written and on the disk. An early end, an
    error of any kind in `write` included, removes the hidden file and leaves what was there. Its name
    starts with a dot and ends in TEMPORARY_SUFFIX, so that no reader of the directory takes it for data.

    Raises:
        StorageError: the disk is full, the directory not writable, or the like.
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
    """Create `directory` where it is missing.

    Raises:
        StorageError: it cannot be created or is a file.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise storage_error(directory, error) from error


def remove_unfinished(directory: Path) -> int:
    """Delete what `write_whole` left behind when its process was killed; how many there were."""
    leftovers = list(directory.glob(f".*{TEMPORARY_SUFFIX}"))
    for leftover in leftovers:
        leftover.unlink(missing_ok=True)
    return len(leftovers)


def storage_error(path: Path, error: OSError) -> StorageError:
    """`error` as one line that names the path and what to do."""
    return StorageError(f"cannot write {path}: {reason_of(error)}")


def is_there(path: Path) -> bool:
    """Return whether there is a file; one that cannot be looked for is not taken for missing.

    Raises:
        StorageError: the system refuses to say.
    """
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise StorageError(f"cannot look for {path}: {reason_of(error)}") from error
    return True


def sync_directory(directory: Path) -> None:
    """Bring the names in a directory to the disk, as far as there is one.

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
    """Bring a file to the disk, or the names in a directory. Raises OSError."""
    if path.is_dir():
        sync_directory_entries(str(path))
        return
    descriptor = os.open(path, os.O_RDWR | OPEN_FLAGS)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
