"""`ParentProcess`: detects the end of the parent process, so that a broker ends with its program."""

from __future__ import annotations

import os
import stat
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

LOOK_EVERY_S = 0.25
"""The seconds between checks that the parent still runs, on systems that do not report its end."""


class ParentProcess:
    """The parent process at the time when this object is made, which should be as early as possible.

    Linux reports the end of the parent through a process descriptor (pidfd), also after kill -9; the end of
    the thread that started this process does not count. On other POSIX systems a timer checks whether the
    parent's id has changed. On Windows, where a process keeps the id of its parent, the end of standard input
    counts as the end of the parent, if standard input is a pipe.
    """

    def __init__(self) -> None:
        self._number = os.getppid()
        self._has_ended = False
        self._descriptor: int | None = None
        opened: Any = getattr(os, "pidfd_open", None)
        if opened is not None:
            try:
                self._descriptor = opened(self._number)
            except ProcessLookupError:
                self._has_ended = True
            except OSError:
                pass  # an old kernel, or a sandbox that forbids the call: the timer looks
        # Between the two calls the number may have become that of another process.
        if os.name == "posix" and os.getppid() != self._number:
            self._has_ended = True

    def when_ended(self, loop: AbstractEventLoop, action: Callable[[], object]) -> None:
        """Call `action` on an event loop when the parent ends, or at once if the parent has ended already."""
        if self._has_ended:
            loop.call_soon(action)
        elif self._descriptor is not None:
            self._await_descriptor(loop, self._descriptor, action)
        elif os.name == "posix":
            self._look(loop, action)
        else:
            _await_end_of_input(loop, action)

    def _await_descriptor(
        self, loop: AbstractEventLoop, descriptor: int, action: Callable[[], object]
    ) -> None:
        def ended() -> None:
            loop.remove_reader(descriptor)
            os.close(descriptor)
            action()

        loop.add_reader(descriptor, ended)

    def _look(self, loop: AbstractEventLoop, action: Callable[[], object]) -> None:
        if os.getppid() != self._number:
            action()
        else:
            loop.call_later(LOOK_EVERY_S, self._look, loop, action)


def _await_end_of_input(loop: AbstractEventLoop, action: Callable[[], object]) -> None:
    try:
        descriptor = sys.stdin.fileno()
        is_pipe = stat.S_ISFIFO(os.fstat(descriptor).st_mode)
    except (AttributeError, OSError, ValueError):
        return  # there is no standard input
    if not is_pipe:
        return

    def read() -> None:
        try:
            while os.read(descriptor, 4096):
                pass
        except OSError:
            pass
        with suppress(RuntimeError):  # the loop has ended before
            loop.call_soon_threadsafe(action)

    threading.Thread(target=read, name="penstock-parent", daemon=True).start()
