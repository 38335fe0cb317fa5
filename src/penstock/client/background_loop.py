"""One event loop on one background thread, for all blocking clients of a process; tasks that clients share.

Ctrl-C interrupts a waiting thread at once, and cancels the coroutine that it waits for. Threads do not
survive a fork, so a forked child drops the parent's loop and starts one of its own when it first needs one.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

from penstock.common.logs import logger_named
from penstock.common.operating_system import after_fork_in_child
from penstock.errors import NetworkError

T = TypeVar("T")

logger = logger_named("penstock.client")


class _Background:
    """The background event loop and the thread that runs it."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._run, name="penstock-client", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        """Run the loop for ever, even after a callback of the application has raised `SystemExit`.

        All blocking clients of the process wait for this thread, so it logs the exception and continues.
        """
        while True:
            try:
                self.loop.run_forever()
            except BaseException:
                logger.exception("a callback has tried to end the thread of all clients, which goes on")
            else:
                return


_background: _Background | None = None
_starting = threading.Lock()
_orphans: list[_Background] = []
"""The loops of parent processes, kept so that no finaliser closes sockets that the parent still uses."""


def _forget_parent() -> None:
    global _background, _starting
    if _background is not None:
        _orphans.append(_background)
    _background = None
    _starting = threading.Lock()


after_fork_in_child(_forget_parent)


def background_loop() -> asyncio.AbstractEventLoop:
    """Return the event loop of all blocking clients, which the first call starts."""
    return _started().loop


def is_background_loop(loop: asyncio.AbstractEventLoop) -> bool:
    """Return True if `loop` is the event loop of all blocking clients."""
    return _background is not None and _background.loop is loop


def _started() -> _Background:
    global _background
    if _background is None:
        with _starting:
            if _background is None:
                _background = _Background()
    return _background


class _Call(Generic[T]):
    """A coroutine that the loop runs while one thread waits for its result."""

    def __init__(self, coroutine: Coroutine[Any, Any, T]) -> None:
        self._coroutine = coroutine
        self._done = threading.Lock()
        self._done.acquire()
        self._task: asyncio.Task[T] | None = None
        self._is_cancelled = False
        self._failure: Exception | None = None

    def start(self) -> None:
        if self._is_cancelled:
            self._coroutine.close()
            return
        try:
            self._task = asyncio.get_running_loop().create_task(self._coroutine)
            self._task.add_done_callback(lambda _: self._done.release())
        except Exception as error:
            # The waiting thread gets the exception, as from a task that fails.
            self._failure = error
            self._done.release()

    def cancel(self) -> None:
        self._is_cancelled = True
        if self._task is not None:
            self._task.cancel()
            self._task.add_done_callback(ignore_outcome)

    def join(self) -> None:
        self._done.acquire()

    def result(self) -> T:
        if self._failure is not None:
            raise self._failure
        assert self._task is not None
        return self._task.result()


def ignore_outcome(task: asyncio.Task[Any]) -> None:
    """Mark a task's exception as retrieved, so that asyncio logs no warning about it."""
    if not task.cancelled():
        task.exception()


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the background loop, wait for it, and return its result.

    Raises: what the coroutine raises. KeyboardInterrupt cancels the coroutine.
    """
    background = _started()
    if threading.current_thread() is background.thread:
        coroutine.close()
        raise RuntimeError(
            "a blocking client was called from a callback of its own event loop, which would wait for "
            "itself: hand the work to another thread"
        )
    call = _Call(coroutine)
    background.loop.call_soon_threadsafe(call.start)
    try:
        call.join()
    except BaseException:
        background.loop.call_soon_threadsafe(call.cancel)
        raise
    return call.result()


def finish(coroutine: Coroutine[Any, Any, object]) -> None:
    """Run a coroutine that closes a client, and wait for it if that is possible.

    In the loop's own thread, where the garbage collector may make this call, the coroutine is only started.
    If the interpreter exits and the loop's thread no longer runs, the coroutine is dropped. In all other
    cases, the call does what `run` does.
    """
    background = _started()
    if sys.is_finalizing() or not background.thread.is_alive():
        coroutine.close()
    elif threading.current_thread() is background.thread:
        background.loop.create_task(coroutine).add_done_callback(ignore_outcome)
    else:
        run(coroutine)


async def outcome_of(task: asyncio.Task[T]) -> T:
    """Return the result of a task that other callers wait for, too: a cancelled caller leaves it running.

    Raises:
        NetworkError: the task itself was cancelled, because the client was closed.
    """
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if task.cancelled():
            raise NetworkError("the client was closed") from None
        task.add_done_callback(ignore_outcome)
        raise


class KeyedTasks:
    """Background tasks of one event loop, at most one at a time for each key (in Go: single flight).

    `finished` is called on the event loop whenever a task ends.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, finished: Callable[[], object]) -> None:
        self._loop = loop
        self._finished = finished
        self._tasks: dict[Hashable, asyncio.Task[None]] = {}
        self._is_closed = False

    def start(self, key: Hashable, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run `coroutine` as a task, or close it at once if a task with the same key is running."""
        if key in self._tasks or self._is_closed:
            coroutine.close()
            return
        task = self._tasks[key] = self._loop.create_task(coroutine)

        def finish(_: asyncio.Task[None]) -> None:
            del self._tasks[key]
            self._finished()

        task.add_done_callback(finish)

    async def close(self) -> None:
        """Cancel every task, and wait until they have ended. Later calls of `start` do nothing."""
        self._is_closed = True
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
