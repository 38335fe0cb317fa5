"""System calls that not every operating system has, and their replacements.

Linux has them all. macOS lacks `fdatasync` and `TCP_CORK`; Windows lacks those, positioned reads and writes,
`sendfile`, `fcntl`, `resource`, `fork`, and directories that can be opened. Each call is chosen once, at
import, so that Linux pays nothing. `tests/test_other_systems.py` removes the calls that other systems lack,
and runs a broker and clients.
"""

from __future__ import annotations

import errno
import mmap
import os
import signal
import socket
import threading
from collections.abc import Callable
from sys import platform
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

IS_MACOS: bool = platform.startswith("darwin")

OPEN_FLAGS: int = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
"""Flags of `os.open` for data files: child processes do not inherit them, and line ends are not converted."""

TCP_CORK: int | None = getattr(socket, "TCP_CORK", None)
"""The socket option that delays TCP segments until they are full; None if the system has none."""

LOOPS_TAKE_SIGNALS = os.name == "posix"
"""True if asyncio's event loops support signal handlers."""

HAS_SENDFILE = hasattr(os, "sendfile")
"""True if the system has `sendfile`. If not, asyncio's replacement must not be used: it moves the position of
a file that several responses share."""

REUSE_ADDRESS: int | None = socket.SO_REUSEADDR if os.name == "posix" else None
"""The socket option for listening on a port while connections of an earlier process to it linger; None on
Windows. There the address is free at once, and `SO_REUSEADDR` would let other processes listen on it too.
"""

_positions = threading.Lock()
"""A lock that is held from a seek in a file to the read or write at that position."""


def _read_at(fd: int, size: int, position: int) -> bytes:
    with _positions:
        os.lseek(fd, position, os.SEEK_SET)
        return os.read(fd, size)


def _write_at(fd: int, data: Any, position: int) -> int:
    with _positions:
        os.lseek(fd, position, os.SEEK_SET)
        return os.write(fd, data)


def _no_advice(mapping: Any) -> None:
    """Do nothing: the replacement of `madvise` on systems that lack it."""


def _advise_sequential(mapping: Any) -> None:
    mapping.madvise(mmap.MADV_SEQUENTIAL)


def _sync_by_fcntl() -> Callable[[int], object] | None:
    """Return a function that syncs a file with `F_FULLFSYNC` on macOS; None on other systems.

    On macOS, `fsync` leaves data in the drive's cache.
    """
    if not IS_MACOS:
        return None
    import fcntl

    calls: Any = fcntl  # the system of the type checker may lack it
    return lambda fd: calls.fcntl(fd, calls.F_FULLFSYNC)


pread: Callable[[int, int, int], bytes] = getattr(os, "pread", _read_at)
"""Read up to `size` bytes of a descriptor at a position: `pread(fd, size, position)`."""

pwrite: Callable[[int, Any, int], int] = getattr(os, "pwrite", _write_at)
"""Write bytes to a descriptor at a position, and return their number: `pwrite(fd, data, position)`."""

fdatasync: Callable[[int], object] = getattr(os, "fdatasync", None) or _sync_by_fcntl() or os.fsync
"""Wait until the data of a descriptor is on the medium."""

advise_sequential: Callable[[Any], None] = (
    _advise_sequential if hasattr(mmap, "MADV_SEQUENTIAL") else _no_advice
)
"""Announce to the system that a mapping is read from front to back."""


def after_fork_in_child(action: Callable[[], object]) -> None:
    """Run `action` in each child that this process forks. Does nothing on systems without `fork`."""
    register: Any = getattr(os, "register_at_fork", None)
    if register is not None:
        register(after_in_child=action)


def sync_directory_entries(path: str) -> None:
    """Sync the creations and renames in a directory to disk, where directories can be opened.

    Raises:
        OSError: the directory cannot be opened, or the device failed.
    """
    flag: int | None = getattr(os, "O_DIRECTORY", None)
    if flag is None:
        return
    fd = os.open(path, os.O_RDONLY | flag | OPEN_FLAGS)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def try_lock(fd: int, *, for_process: bool = True) -> bool:
    """Take the lock of an open file without waiting; return False if another process or descriptor has it.

    By default the lock belongs to the process, which may take it again, like the lock of Kafka's log
    directories. If `for_process` is False, it belongs to the descriptor. The lock ends when its owner is
    closed or ends.

    Raises:
        OSError: the file system does not support locks.
    """
    try:
        import fcntl
    except ImportError:
        return _try_lock_msvcrt(fd)
    try:
        take = fcntl.lockf if for_process else fcntl.flock
        take(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EAGAIN):
            return False
        raise
    return True


def _try_lock_msvcrt(fd: int) -> bool:
    try:
        import msvcrt
    except ImportError:
        raise OSError(errno.ENOLCK, "this system has no locks for files") from None
    locking: Any = msvcrt
    try:
        locking.locking(fd, locking.LK_NBLCK, 1)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EDEADLOCK):
            return False
        raise
    return True


def has_unread(descriptor: int) -> bool:
    """Return True if the system has unread bytes of a socket; False for a closed socket."""
    try:
        import fcntl
        import termios
    except ImportError:
        import select

        try:
            return bool(select.select([descriptor], [], [], 0)[0])
        except (OSError, ValueError):
            return False
    waiting = bytearray(4)
    try:
        fcntl.ioctl(descriptor, termios.FIONREAD, waiting)
    except (OSError, ValueError):
        return False
    return any(waiting)


def on_signal(loop: AbstractEventLoop, number: int, action: Callable[[], object]) -> None:
    """Run `action` in an event loop of the main thread each time a signal arrives."""
    if LOOPS_TAKE_SIGNALS:
        loop.add_signal_handler(number, action)
    else:
        signal.signal(number, lambda *_: loop.call_soon_threadsafe(action))


class DescriptorLimits(NamedTuple):
    """A process's limits of open files: the current and the highest possible limit. None means no limit."""

    soft: int | None
    hard: int | None


def descriptor_limits() -> DescriptorLimits:
    """Return the limits of open files of this process; both None if the system has no such limit."""
    try:
        import resource
    except ImportError:
        return DescriptorLimits(None, None)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    return DescriptorLimits(None if soft == unlimited else soft, None if hard == unlimited else hard)


def raise_descriptor_limit_to(limit: int) -> bool:
    """Set the soft limit of open files of this process; return True if the system has accepted it."""
    try:
        import resource
    except ImportError:
        return False
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    except (OSError, ValueError):
        return False
    return True


def cpu_seconds() -> float:
    """Return the CPU time of this process so far, user and system, in seconds."""
    times = os.times()
    return times.user + times.system


def resident_bytes() -> float:
    """Return the resident memory of this process in bytes.

    Return the peak if only that is available, or NaN.
    """
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return float(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        pass
    try:
        import resource
    except ImportError:
        return float("nan")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return float(peak) * (1 if IS_MACOS else 1024)
