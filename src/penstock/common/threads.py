"""Threads: calls of an application's functions in threads of their own, and pauses of long work.

The threads of an event loop's executor are few, and the end of a process waits for them: functions that block
could occupy all of them, so that the loop could not use any, and the process would not end.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")

PAUSE_S = 0.0002
"""The time in seconds for which `pause` lets other threads run."""


async def in_own_thread(function: Callable[..., T], *arguments: object) -> T:
    """Call `function` in a new thread, with the context variables of this task, and return its result.

    If the caller is cancelled, the function continues in its thread, and its result is dropped. A process can
    end while the function runs.

    Raises:
        RuntimeError: the function has raised an exception that would end this task or the loop, such as
            `SystemExit`; or no thread can be started.
        Exception: any other exception of the function.
    """
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def settle(made: T | None, error: BaseException | None) -> None:
        if outcome.done():
            return
        if error is None:
            outcome.set_result(made)  # type: ignore[arg-type]
        elif isinstance(error, Exception) and not isinstance(error, StopIteration):
            outcome.set_exception(error)
        else:
            stopped = RuntimeError(f"the function has raised {type(error).__name__}: {error}")
            stopped.__cause__ = error
            outcome.set_exception(stopped)

    def call() -> None:
        made: T | None = None
        raised: BaseException | None = None
        try:
            made = context.run(function, *arguments)
        except BaseException as error:
            raised = error
        with suppress(RuntimeError):  # the loop has been closed meanwhile
            loop.call_soon_threadsafe(settle, made, raised)

    threading.Thread(target=call, name="penstock-application", daemon=True).start()
    return await outcome


def pause() -> None:
    """Sleep for `PAUSE_S`, so that another thread runs: Python runs one thread at a time."""
    time.sleep(PAUSE_S)
