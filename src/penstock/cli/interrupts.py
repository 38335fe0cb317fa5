"""Ctrl-C ends a command within a second, whatever it waits for.

The first interrupt is an exception, so that a consumer can leave its group and a producer send what it has;
what that takes is limited by a timer that ends the process. The second interrupt ends it at once.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

PATIENCE_S = 0.9
"""How long clean-up may take after an interrupt. A second is what is felt as at once."""

INTERRUPTED = 130

_last_acts: list[Callable[[], object]] = []


def before_the_end(act: Callable[[], object]) -> None:
    """Have `act` called before the process is ended by the timer. It must not wait for anything."""
    _last_acts.append(act)


@contextlib.contextmanager
def interruptible(*, to_the_end: bool) -> Iterator[None]:
    """Have Ctrl-C end the block within `PATIENCE_S`, by KeyboardInterrupt or by the end of the process.

    `to_the_end` says that the process ends with the block, so that the timer holds for its end as well.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    timer = threading.Timer(PATIENCE_S, _end)
    timer.daemon = True

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        if timer.is_alive():
            _end()
        timer.start()
        raise KeyboardInterrupt

    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:  # as the shell has it for commands in the background
        yield
        return
    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        if not to_the_end:
            timer.cancel()
            signal.signal(signal.SIGINT, before)


def _end() -> None:
    for act in _last_acts:
        with contextlib.suppress(Exception):
            act()
    os._exit(INTERRUPTED)
