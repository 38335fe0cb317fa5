"""Background tasks of one event loop, at most one at a time for each key (what Go calls single flight)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any


class KeyedTasks:
    """The running tasks by key. `finished` is called on the event loop whenever a task ends."""

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
