"""Calls of functions of the application in threads of their own, for what must not wait for them.

The threads of an event loop's executor are few, and the end of a process waits for them: functions that
block would take them all, and then nothing of the loop could use one, and the process would not end.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


async def in_own_thread(function: Callable[..., T], *arguments: object) -> T:
    """Return what `function` returns, called in a new thread, with the context variables of this task.

    A call that is cancelled goes on in its thread, and what comes of it is dropped; the end of the process
    does not wait for it.

    Raises:
        RuntimeError: the function has raised what would end this task or the loop, such as `SystemExit`; or
            no thread can be started.
        Exception: what else the function raises.
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
