"""Ctrl-C ends a command within a second, in any wait.

The first interrupt is a KeyboardInterrupt, as ever, so that a consumer can leave its group and a producer
send what it has; what that takes is limited by a thread that ends the process. The second interrupt ends it
at once. The thread gets interrupts from the interpreter itself (`signal.set_wakeup_fd`), since Spark
brings a handler of its own, which waits for its jobs.
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
"""How long clean-up may take after an interrupt. A second is what is felt as at once."""

INTERRUPTED = 130

_last_acts: list[Callable[[], object]] = []


def before_the_end(act: Callable[[], object]) -> None:
    """Have `act` called before an interrupted process ends by force. It must not wait for anything."""
    _last_acts.append(act)


def be_interruptible() -> None:
    """Have Ctrl-C end the process within `PATIENCE_S` from now on."""
    if threading.current_thread() is threading.main_thread():
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        threading.Thread(target=_watch, args=(reader,), name="penstock-interrupts", daemon=True).start()
        sys.unraisablehook = _say_unless_interrupted


def _say_unless_interrupted(lost: sys.UnraisableHookArgs) -> None:
    """Say what a finalizer raised, as Python does, but for an interrupt that came there: `_watch` has it."""
    if not issubclass(lost.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(lost)


def _watch(reader: int) -> None:
    """Wait for an interrupt, then for another one or the end of patience."""
    while not _is_interrupt(os.read(reader, 64)):
        continue
    while select.select([reader], [], [], PATIENCE_S)[0]:
        if _is_interrupt(os.read(reader, 64)):
            break
    _end()


def _is_interrupt(numbers: bytes) -> bool:
    """Return whether SIGINT is among these signals; others that have a handler are reported as well."""
    return signal.SIGINT in numbers


def _end() -> None:
    for act in _last_acts:
        with contextlib.suppress(Exception):
            act()
    os._exit(INTERRUPTED)
