"""A buffer of fetched parts that are not read yet: filled on the event loop, emptied from any thread."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from penstock.client.fetch.cursors import FetchedPart
    from penstock.model import TopicPartition


class FetchBuffer:
    """A queue of fetched parts. A part is what one Fetch response has for one partition.

    The buffer is full from `limit_bytes` on.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, limit_bytes: int) -> None:
        self._loop = loop
        self._limit_bytes = limit_bytes
        self._lock = threading.Lock()
        self._parts: deque[FetchedPart] = deque()
        self.size_bytes = 0
        self._waiting: list[asyncio.Future[None]] = []

    def __len__(self) -> int:
        return len(self._parts)

    @property
    def has_room(self) -> bool:
        """True if the buffer has less than its limit, so that more may be fetched."""
        return self.size_bytes < self._limit_bytes

    def put(self, part: FetchedPart) -> None:
        """Add a fetched part at the end. Waiting readers are only woken by `announce`."""
        with self._lock:
            self._parts.append(part)
            self.size_bytes += part.size

    def take(self) -> tuple[FetchedPart | None, bool]:
        """Remove and return the oldest fetched part, or None.

        The second value is True if the buffer was full before, and has room again.
        """
        with self._lock:
            if not self._parts:
                return None, False
            part = self._parts.popleft()
            had_room = self.has_room
            self.size_bytes -= part.size
            return part, self.has_room and not had_room

    def discard(self, partitions: Collection[TopicPartition]) -> None:
        """Drop all fetched records of some partitions."""
        with self._lock:
            self._parts = deque(part for part in self._parts if part.tp not in partitions)
            self.size_bytes = sum(part.size for part in self._parts)

    async def wait(
        self, timeout_s: float | None, wake: Callable[[], object], is_enough: Callable[[], bool]
    ) -> bool:
        """Wait until the buffer has a fetched part, or `is_enough()` is true; return True if it has one.

        `wake` is called before each wait, `is_enough` after each `announce`. `timeout_s` is in seconds; None
        means no limit.
        """
        deadline = None if timeout_s is None else self._loop.time() + timeout_s
        while not self._parts and not is_enough():
            future: asyncio.Future[None] = self._loop.create_future()
            self._waiting.append(future)
            wake()
            try:
                async with asyncio.timeout_at(deadline):
                    await future
            except TimeoutError:
                break
            finally:
                if future in self._waiting:
                    self._waiting.remove(future)
        return bool(self._parts)

    def announce(self) -> None:
        """Wake every waiting reader. Call this method on the event loop."""
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)
