"""Replays the cluster: a port for each recorded broker, at which an application gets the recorded answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from penstock.common.listening.serving_thread import Served, ServingThread
from penstock.errors import ConfigError, DecodeError, PenstockError
from penstock.protocol.api import API_TABLE, response_header_version
from penstock.protocol.api_keys import ApiKey
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.framing import (
    RequestHeader,
    UnsupportedRequestError,
    decode_request_header,
    decode_response_header,
    encode_response,
)
from penstock.testing.replay.addresses import has_addresses, move
from penstock.testing.replay.answers import Answers, ReplayedAnswer
from penstock.testing.replay.logs import Unrecorded

if TYPE_CHECKING:
    from penstock.broker.broker import KafkaBroker
    from penstock.testing.replay.exchanges import RecordedExchange

FRAME_BYTES_MAX = 100 * 1024 * 1024
CONNECTIONS_MAX = 1000
"""The greatest number of open connections; a further one is closed at once."""
UNRECORDED_MAX = 100
"""The most unrecorded requests that the error lists, since clients repeat failed requests many times."""
WAIT_MS_MAX = 500
"""The longest wait, in milliseconds, before an empty answer to a fetch."""


class NotRecordedError(PenstockError, AssertionError):
    """Raised if an application has made requests that are not in the recording. The message lists them."""


class PlayedCluster(Served):
    """Serves recorded answers to an application. A ``with`` block raises for unrecorded requests."""

    holds_records = False

    def __init__(
        self,
        exchanges: Sequence[RecordedExchange],
        masked: Sequence[str] = (),
        *,
        otherwise: Literal["error", "broker"],
        host: str = "127.0.0.1",
    ) -> None:
        if otherwise not in ("error", "broker"):
            raise ConfigError(f"otherwise is 'error' or 'broker', not {otherwise!r}")
        self._host = host
        self._passes_on = otherwise == "broker"
        self._answers = Answers(exchanges, masked)
        self._thread = ServingThread(self._serving)
        self._ports: dict[int, int] = {}
        self._open: set[asyncio.Task[None]] = set()
        self.unrecorded: list[str] = []
        """Descriptions of the first hundred requests that were not in the recording."""
        self.broker: KafkaBroker | None = None
        """The `KafkaBroker` that answers unrecorded requests with ``otherwise="broker"``, while serving; else
        None.
        """

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of all replayed brokers, separated by commas."""
        return ",".join(f"{self._host}:{port}" for port in self._ports.values())

    @property
    def unasked(self) -> list[str]:
        """Return descriptions of recorded records and write requests that the application has not sent."""
        return self._answers.unasked()

    def start(self) -> PlayedCluster:
        """Begin to serve, and return when clients can connect.

        Answers that were used before a stop are not used again.
        """
        if self._passes_on and self.broker is None:
            from penstock.broker.broker import KafkaBroker

            self.broker = KafkaBroker(host=self._host).start()
        self._thread.start("penstock-replay")
        return self

    def close(self) -> None:
        """Stop serving. Do nothing if the cluster is stopped."""
        self._thread.stop()
        broker, self.broker = self.broker, None
        if broker is not None:
            broker.close()

    def check(self) -> None:
        """Raise an error if a request was made that is not in the recording.

        Raises:
            NotRecordedError: unrecorded requests were made; the message lists them.
        """
        if self.unrecorded:
            raise NotRecordedError("requests that were not recorded:\n  " + "\n  ".join(self.unrecorded))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        if error is None:
            self.check()
        elif self.unrecorded:
            error.add_note("requests that were not recorded:\n  " + "\n  ".join(self.unrecorded))

    # --- sockets -----------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _serving(self) -> AsyncIterator[None]:
        servers = []
        try:
            for broker_id in sorted(self._answers.broker_ids) or [-1]:
                server = await asyncio.start_server(
                    self._connected, self._host, self._ports.get(broker_id, 0)
                )
                servers.append(server)
                self._ports[broker_id] = server.sockets[0].getsockname()[1]
            yield
        finally:
            for server in servers:
                server.close()
            for task in self._open:
                task.cancel()
            await asyncio.gather(*self._open, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(self._open) >= CONNECTIONS_MAX:
            writer.close()
            return
        self._open.add(task)
        upstream = _Upstream(self.broker)
        try:
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                while True:
                    frame = await _read_frame(reader)
                    answer = await self._answered(frame, upstream)
                    if answer is not None:
                        writer.write(answer)
                        await writer.drain()
        except PenstockError as error:
            self._note(f"a frame that is no request: {error}")
        except Exception as error:  # the connection ends, and the block says why
            self._note(f"a request that cannot be answered: {error!r}")
        finally:
            self._open.discard(task)
            upstream.close()
            writer.close()

    async def _answered(self, frame: bytes, upstream: _Upstream) -> bytes | None:
        try:
            header, position = decode_request_header(frame)
        except UnsupportedRequestError as error:
            if error.api_key != ApiKey.API_VERSIONS:
                raise
            header = RequestHeader(error.api_key, 0, error.correlation_id)
            made = self._answers.reply(header.api_key, 0, None)
            assert made is not None
            made.message.error_code = ErrorCode.UNSUPPORTED_VERSION
            return self._encoded(made, header)
        request: Any = API_TABLE[header.api_key].request.decode(frame[position:], header.api_version)
        try:
            reply = self._answers.reply(header.api_key, header.api_version, request)
        except Unrecorded as error:
            if self._passes_on:
                return await self._passed_on(frame, header, request, upstream)
            self._note(
                f"{API_TABLE[header.api_key].name} v{header.api_version} of {header.client_id!r}: {error}"
            )
            reply = self._answers.error(header.api_key, header.api_version, request, str(error))
            if header.api_key == ApiKey.PRODUCE and not request.acks:
                return None
        if reply is None:
            return None
        if reply.wait_ms:
            await asyncio.sleep(min(reply.wait_ms, WAIT_MS_MAX) / 1000)
        return self._encoded(reply, header)

    async def _passed_on(
        self, frame: bytes, header: RequestHeader, request: Any, upstream: _Upstream
    ) -> bytes | None:
        wants_answer = header.api_key != ApiKey.PRODUCE or bool(request.acks)
        answer = await upstream.ask(frame, wants_answer)
        if answer is None or not has_addresses(header.api_key):
            return None if answer is None else len(answer).to_bytes(4, "big") + answer
        head = response_header_version(header.api_key, header.api_version)
        position = decode_response_header(answer, head)[1]
        message = API_TABLE[header.api_key].response.decode(answer[position:], header.api_version)
        return self._encoded(ReplayedAnswer(message, header.api_version), header)

    def _encoded(self, reply: ReplayedAnswer, header: RequestHeader) -> bytes:
        first = next(iter(self._ports.values()))
        move(reply.message, self._host, lambda broker_id: self._ports.get(broker_id, first))
        return b"".join(encode_response(reply.message, reply.version, header.correlation_id))

    def _note(self, text: str) -> None:
        if text not in self.unrecorded and len(self.unrecorded) < UNRECORDED_MAX:
            self.unrecorded.append(text)

    def __repr__(self) -> str:
        where = f" at {self.bootstrap_servers}" if self.is_running else ""
        return f"<PlayedCluster{where}>"


class _Upstream:
    """The connection to the broker that answers unrecorded requests, opened on first use."""

    def __init__(self, broker: KafkaBroker | None) -> None:
        self._broker = broker
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, frame: bytes, wants_answer: bool) -> bytes | None:
        """Send a request to the broker; return the answer's frame, or None if `wants_answer` is False.

        Raises:
            OSError: the connection to the broker is lost.
        """
        assert self._broker is not None
        if self._streams is None:
            self._streams = await asyncio.open_connection(self._broker.host, self._broker.port)
        reader, writer = self._streams
        writer.write(len(frame).to_bytes(4, "big") + frame)
        await writer.drain()
        return await _read_frame(reader) if wants_answer else None

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()


async def _read_frame(reader: asyncio.StreamReader) -> bytes:
    size = int.from_bytes(await reader.readexactly(4), "big")
    if size > FRAME_BYTES_MAX:
        raise DecodeError(f"a frame of {size} bytes is longer than {FRAME_BYTES_MAX}")
    return await reader.readexactly(size)
