"""Write files atomically: a file is complete or absent, also after a power cut."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from penstock.common.errno_advice import reason_of
from penstock.common.operating_system import OPEN_FLAGS, sync_directory_entries
from penstock.errors import StorageError

if TYPE_CHECKING:
    from pathlib import Path

TEMPORARY_SUFFIX = ".unfinished"


@contextmanager
def renamed(fresh: str, target: str) -> Iterator[None]:
    """Return a ``with`` block that writes the file `fresh`; its end renames `fresh` to `target`.

    After an error, `fresh` is removed instead.

    Raises:
        OSError: the file cannot be renamed.
    """
    try:
        yield
        os.replace(fresh, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(fresh)
        raise


def write_whole_bytes(target: str, data: bytes, *, fresh: str, mode: int, sync: bool) -> None:
    """Write `data` to the file `fresh`, and rename it atomically to `target`.

    `mode` is the permission bits of the new file. With `sync`, the bytes are on the disk before the old file
    is replaced. Without `sync`, a power cut may leave an empty file, or zeros. The directory is not flushed.

    Raises:
        OSError: the file cannot be written.
    """
    with renamed(fresh, target):
        _fill(fresh, data, os.O_TRUNC, mode, sync=sync)


def _fill(path: str, data: bytes, flag: int, mode: int, *, sync: bool) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | flag | OPEN_FLAGS, mode)
    try:
        written = os.write(fd, data)
        while written < len(data):
            written += os.write(fd, data[written:])
        if sync:
            os.fsync(fd)
    finally:
        os.close(fd)


def write_whole(target: Path, write: Callable[[Path], None]) -> None:
    """Replace the file `target` atomically: the function `write` fills a hidden file, which is then renamed.

    The hidden file is complete and on the disk before it replaces an older `target`. If writing ends early,
    by any error in `write` too, the hidden file is removed and `target` is unchanged. The hidden name
    starts with a dot and ends in TEMPORARY_SUFFIX, so that no reader of the directory takes it for data.

    Raises:
        StorageError: the disk is full, the directory is not writable, or another operation fails.
    """
    hidden = target.with_name(f".{target.name}.{os.getpid()}{TEMPORARY_SUFFIX}")
    try:
        with renamed(str(hidden), str(target)):
            write(hidden)
            sync(hidden)
        sync(target.parent)
    except StorageError:
        raise
    except OSError as error:
        raise storage_error(target, error) from error


def write_whole_text(target: Path, text: str) -> None:
    """Replace the file `target` atomically by `text`, as `write_whole` does.

    Raises:
        StorageError: the disk is full, the directory is not writable, or another operation fails.
    """

    def write(hidden: Path) -> None:
        hidden.write_text(text, encoding="utf-8")

    write_whole(target, write)


def create_whole(target: Path, text: str) -> bool:
    """Create the file `target`, and its directories, unless it exists. Return True if it was created.

    If several processes try, exactly one succeeds. The file is complete and on the disk before it has its
    name.

    Raises:
        StorageError: the disk is full, the directory is not writable, or another operation fails.
    """
    hidden = target.with_name(f".{target.name}.{os.urandom(16).hex()}{TEMPORARY_SUFFIX}")
    above = [each for each in target.parents if not is_there(each)]
    make_directory(target.parent)
    try:
        _fill(str(hidden), text.encode(), os.O_EXCL, 0o666, sync=True)
        try:
            os.link(hidden, target)  # a rename would replace the file of another process
        except FileExistsError:
            return False
        for each in (target.parent, *(made.parent for made in above)):
            sync(each)
        return True
    except OSError as error:
        raise storage_error(target, error) from error
    finally:
        with suppress(OSError):
            hidden.unlink(missing_ok=True)


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
    """Return True if a file exists. Raise an error if the system refuses to look for the file.

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
