"""A Kafka 0.7 broker on its own listener, which answers requests strictly one after the other.

The protocol can report a failure only by the error code of a fetch; in every other case the server closes the
connection, as release 0.7.2 does. Data go from the segment file to the socket by `sendfile`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

from penstock.clock import Clock, SystemClock
from penstock.common.failures import Failures, LimitedLog
from penstock.common.listening.accepting import Acceptor, listening_sockets, streaming
from penstock.common.listening.addresses import canonical_address
from penstock.common.listening.exposure import warn_if_exposed
from penstock.common.listening.serving_thread import ServingThread
from penstock.common.logs import logger_named
from penstock.common.operating_system import HAS_SENDFILE, TCP_CORK, has_unread
from penstock.common.threads import pause
from penstock.errors import DecodeError, NetworkError, PenstockError, StorageError, UnpackLimitError
from penstock.log.contract import FileRegion
from penstock.records.compression.codecs import UnpackBudget
from penstock.v07.message_set import Judged, judge
from penstock.v07.settings import Settings
from penstock.v07.store import Found, LocalLogStore, Store
from penstock.v07.topics import Topics
from penstock.v07.wire import (
    FetchPart,
    OffsetsPart,
    ProducePart,
    RequestType,
    WireRequest,
    decode_request,
    encode_offsets,
    response_head,
)

if TYPE_CHECKING:
    from typing_extensions import Buffer

logger = logger_named("penstock.v07")

READ_BYTES_MAX = 256 << 10
"""The maximum number of bytes that a connection's stream buffers before the server reads the request."""

HELD_BYTES_MAX = 512 << 20
"""The maximum total size in bytes of the requests and responses that all connections together hold in
memory.
"""

CONNECTIONS_MAX = 10_000

BACKLOG = 512
"""The maximum number of connections that may wait to be accepted."""

INLINE_UNPACKED_BYTES = 256 << 10
"""The maximum size in bytes of a PRODUCE request, plain and decompressed, that is checked on the event loop;
larger ones are checked in a thread.
"""

INLINE_RECORDS = 2_000
"""The maximum number of messages in wrappers of a PRODUCE request that is checked on the event loop."""

INLINE_BYTES_MAX = 32 << 10
"""The maximum size in bytes of a message set that is copied behind its response header; larger ones use
`sendfile`.
"""

SLICE_BYTES = 128 << 10
"""The size in bytes of the pieces in which a message set in memory is passed to a socket."""

TURNS = 4
"""The maximum number of iterations of the event loop before it calls the handler of a socket with bytes to
read, or of a waiting connection. `stop` lets that many iterations pass.
"""

DRAIN_S = 1.0
"""The maximum time in seconds that `stop` waits for the processing of requests that have arrived."""


class StoreServer:
    """Serves a store, such as the topics of one broker, at one address.

    An exception ends one connection, or one run of the periodic flush, and is reported to `failures`.
    """

    def __init__(
        self,
        store: Store,
        settings: Settings,
        failures: Failures,
        clock: Clock,
        *,
        connections_max: int | None = None,
        read_bytes_max: int = READ_BYTES_MAX,
        held_bytes_max: int | None = None,
        idle_s: float | None = None,
    ) -> None:
        """Prepare to serve `store`. Serving begins with `start`.

        `read_bytes_max` is the size of a connection's read buffer, `held_bytes_max` the largest total size of
        the requests and responses in memory (by default `HELD_BYTES_MAX`), `connections_max` the maximum
        number of connections (by default `CONNECTIONS_MAX`). A connection without any traffic for `idle_s`
        seconds is closed; None keeps such connections open.
        """
        self.store = store
        self.failures = failures
        self._connections_max = connections_max
        self._idle_s = idle_s
        self._read_bytes_max = read_bytes_max
        self._held_bytes_max = held_bytes_max
        self._log = LimitedLog(clock.monotonic, logger)
        self.address = ("", 0)
        self._frame_bytes_max = settings.number("max.socket.request.bytes")
        self._flush_interval_s = settings.number("log.default.flush.scheduler.interval.ms") / 1000
        self._acceptor: Acceptor | None = None
        self._flusher: asyncio.Task[None] | None = None
        self._connections: dict[asyncio.Task[Any], asyncio.StreamWriter] = {}
        self._held_bytes = 0
        self._unpack_limits = settings.unpack_limits
        self._judge = ThreadPoolExecutor(1, thread_name_prefix="penstock-0.7-judge")
        self._judging = 0
        """The number of message sets that wait for the checking thread, or are being checked by it."""

    async def start(self, host: str, port: int) -> None:
        """Listen. Port 0 takes any free port, which `address` then has.

        Raises:
            NetworkError: the server cannot listen on the address.
        """
        loop = asyncio.get_running_loop()
        try:
            sockets = listening_sockets(host, port)
            self._acceptor = Acceptor(loop, streaming(loop, self._serve, self._read_bytes_max), self.failures)
            for one in sockets:
                self._acceptor.start(one, BACKLOG)
        except OSError as error:
            raise NetworkError(
                f"cannot listen for Kafka 0.7 on {host}:{port}: {error.strerror or error}; take another port"
            ) from error
        self.address = sockets[0].getsockname()[:2]
        warn_if_exposed(sockets[0], "read and write all topics of Kafka 0.7", logger)
        self._flusher = loop.create_task(self._flush_regularly())

    async def stop(self) -> None:
        """Stop listening, process requests that have arrived, and close all connections.

        Waits up to `DRAIN_S` for arrived requests, because producers of Kafka 0.7 get no response and would
        lose messages without an error.
        """
        loop = asyncio.get_running_loop()
        for _ in range(TURNS):
            await asyncio.sleep(0)
        if self._acceptor is not None:
            await self._acceptor.stop()
        deadline, quiet_turns = loop.time() + DRAIN_S, 0
        while loop.time() < deadline and quiet_turns < TURNS:
            # What has been read last may go to the thread in a later turn.
            is_at_work = self._judging or any(map(_has_unread, self._connections.values()))
            quiet_turns = 0 if is_at_work else quiet_turns + 1
            await asyncio.sleep(0.001 if is_at_work else 0)
        tasks = [*self._connections, *([self._flusher] if self._flusher else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._judge.shutdown(wait=False, cancel_futures=True)

    async def _flush_regularly(self) -> None:
        failed = ""
        while True:
            await asyncio.sleep(self._flush_interval_s)
            try:
                self.store.flush_due()
                failed = ""
            except StorageError as error:
                if str(error) != failed:
                    logger.error("%s", error)
                failed = str(error)
            except Exception:
                self.failures.caught("0.7 flusher", "forcing logs to disk")

    # --- one connection ----------------------------------------------------------------------------------

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections[task] = writer
        peer = canonical_address((writer.get_extra_info("peername") or ("?",))[0])
        try:
            most = CONNECTIONS_MAX if self._connections_max is None else self._connections_max
            if len(self._connections) > most:
                raise DecodeError(f"{most} connections are open, which is the limit")
            while True:
                async with asyncio.timeout(self._idle_s):
                    size = int.from_bytes(await reader.readexactly(4), "big", signed=True)
                if not 0 < size <= self._frame_bytes_max:
                    raise DecodeError(f"a frame of {size} bytes, the limit is {self._frame_bytes_max}")
                async with asyncio.timeout(self._idle_s):
                    frame = await self._receive(reader, size)
                self._held_bytes += size
                try:
                    await self._answer(decode_request(memoryview(frame)), writer)
                finally:
                    self._held_bytes -= size
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        except TimeoutError:
            reason = f"nothing has come or could be sent for {self._idle_s:g} s"
            self._log.write(
                logging.INFO, "closed connections", "closing connection from %s: %s", peer, reason
            )
            writer.transport.abort()
        except PenstockError as error:
            self._log.write(logging.INFO, "closed connections", "closing connection from %s: %s", peer, error)
        except Exception:
            self.failures.caught("0.7 request", f"a request from {peer}; its connection is closed")
        finally:
            self._connections.pop(task, None)
            writer.close()

    async def _receive(self, reader: asyncio.StreamReader, size: int) -> Buffer:
        """Read the `size` bytes of a request after its length field.

        The bytes count towards `held_bytes_max` when they arrive, not when the length is read.
        """
        if size <= self._read_bytes_max:
            return await reader.readexactly(size)
        frame = bytearray()
        try:
            while len(frame) < size:
                piece = await reader.readexactly(min(size - len(frame), self._read_bytes_max))
                self._held_bytes += len(piece)
                frame += piece
                self._check_held()
        finally:
            self._held_bytes -= len(frame)
        return frame

    def _check_held(self) -> None:
        most = HELD_BYTES_MAX if self._held_bytes_max is None else self._held_bytes_max
        if self._held_bytes > most:
            raise DecodeError(f"requests and responses hold more than {most} bytes")

    async def _answer(self, request: WireRequest, writer: asyncio.StreamWriter) -> None:
        if request.type in (RequestType.PRODUCE, RequestType.MULTIPRODUCE):
            await self._produce(cast("list[ProducePart]", request.parts), writer)
            return
        if request.type is RequestType.OFFSETS:
            writer.write(encode_offsets(await self.store.offsets(cast(OffsetsPart, request.parts[0]))))
        else:
            found = await self.store.fetch(cast("list[FetchPart]", request.parts))
            if request.type is RequestType.MULTIFETCH:
                writer.write(response_head(sum(6 + len(data or b"") for _, data in found)))
            held = sum(len(data) for _, data in found if isinstance(data, bytes))
            self._held_bytes += held
            try:
                self._check_held()
                async with asyncio.timeout(self._idle_s):
                    await self._send(writer, found)
            finally:
                self._held_bytes -= held
        await writer.drain()

    async def _produce(self, parts: list[ProducePart], writer: asyncio.StreamWriter) -> None:
        """Store message sets. Large ones are checked in a thread, one request at a time."""
        inline = UnpackBudget(INLINE_UNPACKED_BYTES, INLINE_RECORDS)
        full: UnpackBudget | None = None
        for part in parts:
            assigned, data = await self.store.choose_partition(part), memoryview(part.messages)
            try:
                inline.take_bytes(len(data))
                judged = judge(data, inline)
            except UnpackLimitError:
                if full is None:
                    full = UnpackBudget(*self._unpack_limits, pause)
                judged = await self._judge_aside(data, full)
            await self.store.store(assigned, judged, lambda error: self._lost(writer, error))

    def _lost(self, writer: asyncio.StreamWriter, error: PenstockError) -> None:
        """Close the connection of a producer whose messages were lost: a PRODUCE of 0.7 has no response."""
        peer = canonical_address((writer.get_extra_info("peername") or ("?",))[0])
        self._log.write(logging.WARNING, "lost messages", "messages of %s are lost: %s", peer, error)
        writer.transport.abort()

    async def _judge_aside(self, data: memoryview, budget: UnpackBudget) -> Judged:
        self._judging += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._judge, judge, data, budget)
        finally:
            self._judging -= 1

    async def _send(self, writer: asyncio.StreamWriter, found: list[Found]) -> None:
        """Send the message sets of a response in order: small ones copied, large ones by `sendfile`.

        ``TCP_CORK`` lets consecutive pieces share TCP segments.
        """
        loop = asyncio.get_running_loop()
        large = any(region is not None and len(region) > INLINE_BYTES_MAX for _, region in found)
        if large:
            _cork(writer, True)
        for error, region in found:
            writer.write(response_head(len(region or b""), error))
            if region is None:
                continue
            if isinstance(region, bytes):
                view = memoryview(region)
                for start in range(0, len(view), SLICE_BYTES):  # what a socket does not take is copied
                    writer.write(view[start : start + SLICE_BYTES])
                    await writer.drain()
            elif len(region) <= INLINE_BYTES_MAX:
                writer.write(_whole(region))
                await writer.drain()  # a request may ask for thousands of parts
            elif not HAS_SENDFILE:
                for block in region.blocks(INLINE_BYTES_MAX):
                    writer.write(block)
                    await writer.drain()
            else:
                sent = await loop.sendfile(
                    writer.transport, cast(Any, region.file), region.position, region.size
                )
                if sent < region.size:
                    raise StorageError(f"{region!r} has become shorter")
        if large:
            _cork(writer, False)


def _has_unread(writer: asyncio.StreamWriter) -> bool:
    """Return True if the kernel has bytes from this peer that were not read yet."""
    return has_unread(writer.get_extra_info("socket").fileno())


def _whole(region: FileRegion) -> bytes:
    data = region.read()
    if len(data) < region.size:
        raise StorageError(f"{region!r} has become shorter")
    return data


def _cork(writer: asyncio.StreamWriter, is_corked: bool) -> None:
    """Let the kernel send only full TCP segments while `is_corked`, so that pieces share segments."""
    if TCP_CORK is not None:
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, TCP_CORK, is_corked)


@asynccontextmanager
async def serving(
    directory: str,
    host: str,
    port: int,
    settings: Settings,
    clock: Clock | None = None,
    failures: Failures | None = None,
) -> AsyncIterator[StoreServer]:
    """Serve the topics in `directory` on the running event loop during a ``with`` block.

    `failures` gets exceptions that end one connection, or one turn of a background task. If the settings have
    `zk.connect`, the broker is registered in ZooKeeper during the block.

    Raises:
        NetworkError: the server cannot listen on the address, or cannot reach ZooKeeper.
        StorageError: the directory cannot be used.
    """
    clock = clock or SystemClock()
    topics = Topics(directory, settings, clock)
    try:
        server = StoreServer(
            LocalLogStore(topics), settings, failures or Failures(clock.monotonic, logger), clock
        )
        await server.start(host, port)
        try:
            if settings.text("zk.connect"):
                from penstock.v07.groups.registration import registered

                async with registered(topics, settings, server.address):
                    yield server
            else:
                yield server
        finally:
            await server.stop()
    finally:
        topics.close()


class Broker07:
    """A Kafka 0.7 broker inside this process, on a thread with its own event loop.

    `data_dir` holds the logs; `settings` are names of 0.7's server.properties (see `Settings`).

        with Broker07("/var/kafka-logs") as broker:
            connect(broker.host, broker.port)
    """

    def __init__(
        self,
        data_dir: str | os.PathLike[str],
        host: str = "127.0.0.1",
        port: int = 0,
        settings: Mapping[str, object] | None = None,
        *,
        clock: Clock | None = None,
    ) -> None:
        self.data_dir = os.fspath(data_dir)
        self.host = host
        self.port = port
        self.settings = Settings({name: str(value) for name, value in (settings or {}).items()})
        self._clock = clock
        self._thread = ServingThread(self._serving)

    def start(self) -> Broker07:
        """Start serving; return when clients can connect.

        Raises:
            PenstockError: as `serving`.
        """
        self._thread.start("penstock-broker-0.7")
        return self

    def close(self) -> None:
        """Stop serving and flush. Does nothing if the broker is stopped."""
        self._thread.stop()

    def __enter__(self) -> Broker07:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @asynccontextmanager
    async def _serving(self) -> AsyncIterator[None]:
        async with serving(self.data_dir, self.host, self.port, self.settings, self._clock) as server:
            self.port = server.address[1]
            yield
