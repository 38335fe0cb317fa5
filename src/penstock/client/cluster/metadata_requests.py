"""Metadata requests, one at a time: topics that are needed meanwhile go into the next request together."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from penstock.client.cluster.connection_pool import ignore_outcome
from penstock.errors import NetworkError


class _Request:
    """A request for the metadata of the topics `names`, or of all topics if `names` is None."""

    task: asyncio.Task[None]

    def __init__(self) -> None:
        self.names: set[str] | None = set()

    def covers(self, wanted: set[str] | None) -> bool:
        return self.names is None or (wanted is not None and wanted <= self.names)

    def add(self, wanted: set[str] | None) -> None:
        if self.names is not None:
            self.names = None if wanted is None else self.names | wanted


class MetadataRequests:
    """Sends metadata requests. `ask` sends one, for sorted topic names, or for all topics if None."""

    def __init__(self, ask: Callable[[list[str] | None], Awaitable[None]]) -> None:
        self._ask = ask
        self._sent: _Request | None = None
        self._next: _Request | None = None
        """The request to send after the one in flight. Until then, topic names are added to it."""

    async def get(self, wanted: set[str] | None) -> None:
        """Wait for the response to a request that covers the topics `wanted`, or all topics if None.

        Raises:
            NetworkError: the client was closed.
            PenstockError: what `ask` raises.
        """
        request = self._sent
        if request is None or not request.covers(wanted):
            request = self._next
            if request is None:
                request = self._next = _Request()
                request.task = asyncio.create_task(self._run(request, self._sent))
                request.task.add_done_callback(self._ended)
            request.add(wanted)
        task = request.task
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():
                raise NetworkError("the client was closed") from None
            task.add_done_callback(ignore_outcome)
            raise

    async def _run(self, request: _Request, before: _Request | None) -> None:
        if before is not None:
            await asyncio.wait([before.task])
        self._sent, self._next = request, None
        await self._ask(None if request.names is None else sorted(request.names))

    def _ended(self, task: asyncio.Task[None]) -> None:
        for request in (self._sent, self._next):
            if request is not None and request.task is task:
                if request is self._sent:
                    self._sent = None
                else:
                    self._next = None

    def tasks(self) -> list[asyncio.Task[None]]:
        """Return the tasks of the requests that are under way or waiting."""
        return [each.task for each in (self._sent, self._next) if each is not None]
