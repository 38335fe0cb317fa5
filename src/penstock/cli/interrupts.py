"""Makes Ctrl-C end a command within a second, in any wait.

The first interrupt raises KeyboardInterrupt as usual, so that a consumer can leave its group and a producer
can send pending records; a thread ends the process if that takes too long. A second interrupt ends the
process at once. The thread is notified by the interpreter itself (`signal.set_wakeup_fd`), since Spark
installs a handler of its own, which waits for its jobs.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import threading
from collections.abc import Callable

PATIENCE_S = 0.9
"""The seconds that clean-up may take after an interrupt, before the process is ended by force."""

INTERRUPTED = 130

_last_acts: list[Callable[[], object]] = []


def before_the_end(act: Callable[[], object]) -> None:
    """Register a function that is called before an interrupted process is ended by force.

    The function must not block.
    """
    _last_acts.append(act)


def be_interruptible() -> None:
    """Make Ctrl-C end the process within `PATIENCE_S` seconds from now on."""
    if threading.current_thread() is threading.main_thread():
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        threading.Thread(target=_watch, args=(reader,), name="penstock-interrupts", daemon=True).start()
        sys.unraisablehook = _say_unless_interrupted


def _say_unless_interrupted(lost: sys.UnraisableHookArgs) -> None:
    """Report an exception in a finalizer as Python does, but ignore interrupts, which `_watch` handles."""
    if not issubclass(lost.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(lost)


def _watch(reader: int) -> None:
    """Wait for an interrupt; end the process after a second one, or `PATIENCE_S` seconds after the first."""
    while not _is_interrupt(os.read(reader, 64)):
        continue
    while select.select([reader], [], [], PATIENCE_S)[0]:
        if _is_interrupt(os.read(reader, 64)):
            break
    _end()


def _is_interrupt(numbers: bytes) -> bool:
    """Return True if SIGINT is among the received signal numbers, one byte each."""
    return signal.SIGINT in numbers


def _end() -> None:
    for act in _last_acts:
        with contextlib.suppress(Exception):
            act()
    os._exit(INTERRUPTED)
