"""An event loop on its own thread, which serves something until `stop` is called.

Brokers inside a program run on it. `start` returns when the service can be reached. An exception that ends
the thread is raised by the next call of `start` or `stop`. This module does not depend on brokers.
"""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Self, TypeVar

from penstock.common.listening.endings import announce
from penstock.common.logs import logger_named

T = TypeVar("T")

logger = logger_named("penstock.broker")


class Served(ABC):
    """A service that runs on a thread from `start` to `close`. A `with` block calls both methods."""

    _thread: ServingThread
    _holds_records = True
    """True if the service has topics, which the report of a failed test then shows."""

    @property
    def is_running(self) -> bool:
        return self._thread.is_running

    @abstractmethod
    def start(self) -> Self:
        """Start serving; return when clients can connect. Does nothing if the service runs already."""

    @abstractmethod
    def close(self) -> None:
        """Stop serving. Does nothing if the service is stopped."""

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        announce(self, error)
        self.close()

    async def __aenter__(self) -> Self:
        return await asyncio.get_running_loop().run_in_executor(None, self.start)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.get_running_loop().run_in_executor(None, self.__exit__, kind, error, trace)


class ServingThread:
    """Runs the async context manager `serving()` on a daemon thread, from `start` to `stop`. Restartable."""

    def __init__(self, serving: Callable[[], AbstractAsyncContextManager[object]]) -> None:
        self._serving = serving
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._settled = threading.Event()
        self._failure: BaseException | None = None

    @property
    def is_running(self) -> bool:
        return self._thread is not None

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The event loop while it runs, otherwise None."""
        return self._loop if self.is_running else None

    def start(self, name: str) -> None:
        """Start the thread with this name; return when `serving()` is entered.

        Does nothing if the thread runs.

        Raises:
            BaseException: the exception that `serving()` has raised when it was entered.
        """
        if self._thread is not None:
            return
        self._settled.clear()
        self._failure = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()
        self._settled.wait()
        self._raise_failure()

    def stop(self) -> None:
        """Leave `serving()` and wait for the thread to end. Does nothing if the thread does not run.

        Raises:
            BaseException: the exception that `serving()` has raised when it was left, or that has ended the
                thread before.
        """
        thread, self._thread = self._thread, None
        if thread is None:
            return
        loop, stopping = self._loop, self._stopping
        assert loop is not None
        assert stopping is not None
        if thread.is_alive():
            loop.call_soon_threadsafe(stopping.set)
        thread.join()
        self._raise_failure()

    def _raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            self._thread = None
            raise failure

    def _run(self) -> None:
        try:
            # By name, since a policy may offer a loop that has no sendfile.
            with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
                run_to_the_end(runner, self._serve())
        except BaseException as error:
            self._failure = error
        finally:
            self._settled.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        async with self._serving():
            self._settled.set()
            await self._stopping.wait()


def run_to_the_end(runner: asyncio.Runner, work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in a runner's loop, and return its result, even after a lack of memory.

    A `MemoryError` between two callbacks would otherwise end the loop, and with it everything that it serves.
    The loop is then run again, and due callbacks are still called.
    """
    loop = runner.get_loop()
    task = loop.create_task(work)
    while True:
        try:
            return loop.run_until_complete(task)
        except MemoryError as error:
            if task.done():
                raise
            logger.error("the event loop ran out of memory and goes on: %s", error)
