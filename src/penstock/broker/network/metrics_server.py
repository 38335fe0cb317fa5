"""An HTTP server for a few pages, such as ``/metrics`` and ``/health``. It answers GET and HEAD only."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from penstock.common.listening.accepting import Acceptor, listening_sockets, streaming
from penstock.common.listening.exposure import warn_if_exposed
from penstock.common.logs import logger_named

if TYPE_CHECKING:
    from penstock.common.failures import Failures

logger = logger_named("penstock.broker")

REQUEST_BYTES_MAX = 8 << 10
SECONDS_MAX = 5.0
"""The maximum time in seconds in which an HTTP request must arrive completely."""

CONNECTIONS_MAX = 32
"""The maximum number of open connections; further ones are closed. Monitoring needs one or two."""


PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
JSON = "application/json"


class Page(NamedTuple):
    """One page of the HTTP server: a function that returns the text, and the content type."""

    text: Callable[[], str]
    type: str = PROMETHEUS
    is_ready: Callable[[], bool] | None = None
    """A function that returns True for status 200, False for status 503. None: the status is always 200."""


class MetricsServer:
    """Serves `pages` by their paths. If a page raises an exception, it is logged and the status is 500."""

    def __init__(self, pages: Mapping[str, Page], failures: Failures) -> None:
        self._pages = pages
        self._failures = failures
        self._acceptor: Acceptor | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self.port = 0

    async def start(self, host: str, port: int) -> None:
        """Listen for HTTP connections.

        Raises:
            OSError: the address cannot be listened on.
        """
        loop = asyncio.get_running_loop()
        sockets = listening_sockets(host, port)
        self._acceptor = Acceptor(loop, streaming(loop, self._serve, REQUEST_BYTES_MAX), self._failures)
        self.port = sockets[0].getsockname()[1]
        warn_if_exposed(sockets[0], "read the metrics", logger)
        for one in sockets:
            self._acceptor.start(one, CONNECTIONS_MAX)

    async def stop(self) -> None:
        if self._acceptor is not None:
            await self._acceptor.stop()
        for writer in list(self._open):
            writer.transport.abort()
        while self._open:
            await asyncio.sleep(0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            if len(self._open) <= CONNECTIONS_MAX:
                async with asyncio.timeout(SECONDS_MAX):
                    head = await reader.readuntil(b"\r\n\r\n")
                    writer.write(self._answer(head))
                    await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            # A request that is no HTTP is answered with nothing.
            pass
        except Exception:
            self._failures.caught("metrics", "a request for metrics")
        finally:
            self._open.discard(writer)
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    def _answer(self, head: bytes) -> bytes:
        words = head.split(b"\r\n", 1)[0].split(b" ")
        if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
            return _response("400 Bad Request", "this is not HTTP\n")
        if words[0] not in (b"GET", b"HEAD"):
            return _response("405 Method Not Allowed", "only GET\n")
        page = self._pages.get(words[1].split(b"?", 1)[0].decode("latin-1"))
        if page is None:
            return _response("404 Not Found", f"there is {', '.join(self._pages)}\n")
        try:
            text = page.text()
            is_ready = page.is_ready is None or page.is_ready()
        except Exception:
            self._failures.caught("metrics", "the page of metrics")
            return _response("500 Internal Server Error", "see the broker's log\n")
        status = "200 OK" if is_ready else "503 Service Unavailable"
        return _response(status, text, page.type, with_body=words[0] == b"GET")


def _response(status: str, text: str, type_: str = PROMETHEUS, *, with_body: bool = True) -> bytes:
    body = text.encode()
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {type_}\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + (body if with_body else b"")
