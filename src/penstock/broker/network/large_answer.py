"""Sends a large response, made of memory and regions of files, as fast as the client reads."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Protocol, cast

from penstock.broker.network.regions import cork
from penstock.log.contract import FileRegion

if TYPE_CHECKING:
    from penstock.broker.requests.routes import Piece

INLINE_BYTES_MAX = 64 << 10
"""The maximum bytes of a response whose parts are copied together and written at once; the parts of a
larger one are written one by one."""

SENDFILE_BYTES_MAX = 4 << 20
"""The maximum bytes of one `sendfile` call. Each call counts as activity, so that a slow connection
does not count as idle.
"""

WRITE_BYTES_MAX = 256 << 10
"""The maximum bytes passed to the transport in one call. The transport keeps bytes in memory that it
cannot send.
"""


class AnswerSender(Protocol):
    """The interface of a connection for the `LargeAnswer` that it sends."""

    @property
    def is_blocked(self) -> bool:
        """True while the transport's buffer is full, because the client does not read."""

    @property
    def sends_from_files(self) -> bool:
        """True if `sendfile` can send bytes of a file to the socket."""

    def fail(self, what: str) -> None:
        """End the connection after an unexpected error; called inside an ``except`` block."""

    def hang_up(self, reason: str) -> None:
        """Close the connection."""

    def note_activity(self) -> None:
        """Record that the client has read bytes now, so that the connection does not count as idle."""

    def sent(self) -> None:
        """Continue with the next request: the large response has been sent or abandoned."""


class LargeAnswer:
    """One large response and the asyncio task that sends it."""

    __slots__ = ("_drained", "_loop", "_sender", "_task", "_transport")

    def __init__(
        self,
        sender: AnswerSender,
        transport: asyncio.Transport,
        loop: asyncio.AbstractEventLoop,
        pieces: list[Piece],
    ) -> None:
        self._sender = sender
        self._transport = transport
        self._loop = loop
        self._drained: asyncio.Future[None] | None = None
        self._task = loop.create_task(self._send(pieces))

    def cancel(self) -> None:
        """Stop sending, because the connection is closed. If the task has not begun, `sent` is not called."""
        self._task.cancel()

    def go_on(self) -> None:
        """Continue to send, because the transport's buffer has room again."""
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)

    async def _send(self, pieces: list[Piece]) -> None:
        sender = self._sender
        try:
            cork(self._transport, True)
            for piece in pieces:
                if isinstance(piece, FileRegion):
                    await self._send_region(piece)
                else:
                    await self._send_memory(memoryview(piece))
            cork(self._transport, False)
        except RecursionError:
            sender.fail("sending an answer")
        except (OSError, RuntimeError) as error:
            # asyncio raises RuntimeError when the transport was closed meanwhile.
            sender.hang_up(f"sending failed: {error}")
        except Exception:
            sender.fail("sending an answer")
        finally:
            sender.sent()

    async def _send_region(self, region: FileRegion) -> None:
        if not self._sender.sends_from_files:
            for block in region.blocks(WRITE_BYTES_MAX):
                await self._send_memory(block)
                self._sender.note_activity()
            return
        file = cast(Any, region.file)
        position, end = region.position, region.position + region.size
        while position < end:
            size = min(end - position, SENDFILE_BYTES_MAX)
            if await self._loop.sendfile(self._transport, file, position, size) < size:
                raise OSError(f"{region!r} has become shorter")
            position += size
            self._sender.note_activity()

    async def _send_memory(self, view: memoryview) -> None:
        for position in range(0, len(view), WRITE_BYTES_MAX):
            if self._transport.is_closing():
                raise ConnectionResetError("the peer has hung up")
            self._transport.write(view[position : position + WRITE_BYTES_MAX])
            if self._sender.is_blocked:
                self._drained = self._loop.create_future()
                try:
                    await self._drained
                finally:
                    self._drained = None
