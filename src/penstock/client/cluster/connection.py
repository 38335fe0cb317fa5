"""One TCP connection to one broker: requests out, answers in, in order.

Promises:
- A frame is received straight into one buffer of its size, and the answer's `records` are views of it:
  nothing is copied between the socket and the decoder.
- Any number of requests may be under way; brokers answer in order.
- A dead connection remembers why it died, tells everyone who waits, and everyone who comes later.
- A request whose answer is overdue kills the connection: in-order answers mean that nothing sent after
  it can be answered either.

Does not know what the requests mean, nor which versions the broker speaks.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from penstock.client.cluster.other_protocols import known_beginning
from penstock.client.config import Address, ClientConfig
from penstock.common.reused_buffers import ReusedMemory
from penstock.errors import DecodeError, NetworkError, PenstockError, RequestTimeoutError
from penstock.printable import printable
from penstock.protocol.api import API_TABLE
from penstock.protocol.framing import decode_response, encode_request

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from penstock.protocol.message import Message

SCRATCH_BYTES = 16 << 10
"""Frames that fit are read together into the scratch buffer; longer ones get a buffer of their own."""

UNSUPPORTED_VERSION = (35).to_bytes(2, "big")
"""A broker that does not know our version of ApiVersions answers this error in the layout of version 0."""

UNSENT_BYTES_MAX = 1 << 20
"""How much asyncio may hold for the kernel before `is_clogged` says that it is enough."""

TCP_QUICKACK: int | None = getattr(socket, "TCP_QUICKACK", None)
"""Linux has it."""

IOV_MAX = 1024
"""The most pieces that one sendmsg takes (limits.h on Linux)."""


class _Waiting:
    """A request that has been sent and not yet answered."""

    __slots__ = ("correlation_id", "deadline", "future", "response_class", "version")

    def __init__(
        self,
        correlation_id: int,
        response_class: type[Message],
        version: int,
        deadline: float,
        future: asyncio.Future[Any],
    ) -> None:
        self.correlation_id = correlation_id
        self.response_class = response_class
        self.version = version
        self.deadline = deadline
        self.future = future


class Connection(asyncio.BufferedProtocol):
    """A connection and everybody who waits on it. Made by `connect`."""

    def __init__(
        self,
        address: Address,
        sock: socket.socket,
        client_id: str,
        frame_bytes_max: int,
        memory: ReusedMemory,
    ) -> None:
        self.address = address
        self.cause: PenstockError | None = None
        """Why the connection is dead; None while it lives."""
        self._sock = sock
        self._client_id = client_id
        self._frame_bytes_max = frame_bytes_max
        self._memory = memory
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._waiting: deque[_Waiting] = deque()
        self._correlation_id = 0
        self._timer: asyncio.TimerHandle | None = None
        self._scratch = memoryview(bytearray(SCRATCH_BYTES))
        self._scratched = 0
        self._frame: memoryview | None = None
        self._filled = 0
        self.is_clogged = False
        """Whether so much is unsent that nobody should send more."""
        self._writable_callbacks: list[Callable[[], None]] = []

    def __repr__(self) -> str:
        state = f"dead: {self.cause}" if self.cause else f"{len(self._waiting)} waiting"
        return printable(f"<Connection {self.address} ({state})>")

    @property
    def is_idle(self) -> bool:
        """Whether no answer is due."""
        return not self._waiting

    def first_due(self) -> tuple[int, str] | None:
        """The number and the name of the request whose answer is due first, from any thread."""
        try:
            first = self._waiting[0]
        except IndexError:
            return None
        return first.correlation_id, first.response_class.__name__.removesuffix("Response")

    @property
    def unsent_bytes(self) -> int:
        """What asyncio holds until the kernel takes it."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    @property
    def is_receiving(self) -> bool:
        """Whether part of an answer has arrived."""
        return self._frame is not None or self._scratched > 0

    def request(self, message: Message, version: int, timeout_s: float) -> asyncio.Future[Any]:
        """Send `message` and return the future of its answer.

        The future raises NetworkError when the connection ends first, RequestTimeoutError when no answer
        comes within `timeout_s`, DecodeError when the answer makes no sense.

        Raises:
            NetworkError: the connection is already dead.
            EncodeError: the message cannot be written in this version.
        """
        self._correlation_id = correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        self._send(encode_request(message, version, correlation_id, self._client_id))
        key = message.API_KEY
        assert key is not None
        future: asyncio.Future[Any] = self._loop.create_future()
        deadline = self._loop.time() + timeout_s
        self._waiting.append(_Waiting(correlation_id, API_TABLE[key].response, version, deadline, future))
        if self._timer is None or deadline < self._timer.when():
            self._arm(deadline)
        return future

    def send_only(self, message: Message, version: int) -> None:
        """Send a request that gets no answer: Produce with acks=0.

        Raises:
            NetworkError: the connection is already dead.
        """
        self._correlation_id = correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        self._send(encode_request(message, version, correlation_id, self._client_id))

    def when_writable(self, callback: Callable[[], None]) -> None:
        """Call `callback` once the kernel has taken most of what was sent, or the connection is dead."""
        if callback not in self._writable_callbacks:
            self._writable_callbacks.append(callback)

    def close(self, cause: PenstockError | None = None) -> None:
        """End the connection. Whoever waits gets `cause`."""
        if self.cause is not None:
            return
        self.cause = cause or NetworkError(f"the connection to {self.address} was closed by this client")
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._transport is not None:
            self._transport.abort()
        waiting, self._waiting = self._waiting, deque()
        for one in waiting:
            if not one.future.done():
                one.future.set_exception(_copy_of(self.cause))
        self.resume_writing()

    # -- sending

    def _send(self, chunks: Sequence[Buffer]) -> None:
        """Hand the chunks to the kernel at once as far as it takes them, and the rest to asyncio.

        asyncio's own `writelines` joins the chunks first (until Python 3.12): a copy of every batch.
        """
        transport = self._transport
        if self.cause is not None or transport is None:
            raise _copy_of(self.cause or NetworkError(f"not connected to {self.address}"))
        rest: Sequence[Buffer] = chunks
        if not transport.get_write_buffer_size():
            try:
                rest = _after(chunks, self._sock.sendmsg(chunks[:IOV_MAX]))
            except (BlockingIOError, InterruptedError):
                pass
            except OSError as error:
                self.close(NetworkError(f"sending to {self.address} failed: {_why(error)}"))
                raise _copy_of(self.cause or NetworkError(_why(error))) from error
        for chunk in rest:
            transport.write(memoryview(chunk))

    # -- receiving: asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(high=UNSENT_BYTES_MAX)

    def get_buffer(self, sizehint: int) -> Buffer:
        if self._frame is not None:
            return self._frame[self._filled :]
        return self._scratch[self._scratched :]

    def buffer_updated(self, nbytes: int) -> None:
        try:
            if self._frame is None:
                self._scratched += nbytes
                self._cut_frames()
                return
            self._filled += nbytes
            if self._filled == len(self._frame):
                frame, self._frame = self._frame, None
                self._answer(frame)
            elif TCP_QUICKACK is not None:
                # The rest may be waiting for this acknowledgement, which the kernel would delay by 40 ms.
                # It has to be told again and again: the option lasts until it sees fit.
                self._sock.setsockopt(socket.IPPROTO_TCP, TCP_QUICKACK, True)
        except DecodeError as error:
            self.close(error)

    def pause_writing(self) -> None:
        self.is_clogged = True

    def resume_writing(self) -> None:
        self.is_clogged = False
        callbacks, self._writable_callbacks = self._writable_callbacks, []
        for callback in callbacks:
            callback()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        if self.cause is None:
            due = f" while {len(self._waiting)} answers were due" if self._waiting else ""
            why = f": {_why(exc)}" if exc is not None else ""
            self.close(NetworkError(f"broker {self.address} ended the connection{due}{why}"))

    # -- receiving: frames

    def _cut_frames(self) -> None:
        """Answer every whole frame in the scratch buffer, and prepare for the one that is cut."""
        scratch, end, position = self._scratch, self._scratched, 0
        while end - position >= 4:
            size = int.from_bytes(scratch[position : position + 4], "big", signed=True)
            if not 4 <= size <= self._frame_bytes_max:
                other = known_beginning(bytes(scratch[position : position + 4]))
                if other is not None:
                    raise DecodeError(f"{self.address} {other}")
                raise DecodeError(
                    f"{self.address} announces a frame of {size} bytes, 4 to {self._frame_bytes_max} are "
                    "expected: is it a Kafka broker? (receive.message.max.bytes is the limit)"
                )
            start = position + 4
            if start + size <= end:
                position = start + size
                self._answer(memoryview(bytes(scratch[start:position])))
                if self.cause is not None:
                    return
            elif 4 + size > SCRATCH_BYTES:
                if not self._waiting:
                    raise DecodeError(f"{self.address} sends {size} bytes that nobody asked for")
                self._frame = self._memory.take(size)
                self._filled = end - start
                self._frame[: self._filled] = scratch[start:end]
                position = end
            else:
                break
        if position:
            self._scratched = end - position
            scratch[: self._scratched] = bytes(scratch[position:end])

    def _answer(self, frame: memoryview) -> None:
        if not self._waiting:
            raise DecodeError(f"{self.address} sent a frame that nobody asked for")
        one = self._waiting[0]
        correlation_id = int.from_bytes(frame[:4], "big", signed=True)
        if correlation_id != one.correlation_id:
            raise DecodeError(
                f"{self.address} answered request {correlation_id} where {one.correlation_id} was due"
            )
        version = one.version
        if one.response_class.NAME == "ApiVersionsResponse" and bytes(frame[4:6]) == UNSUPPORTED_VERSION:
            version = 0
        _, response = decode_response(frame, one.response_class, version)
        self._waiting.popleft()
        if not one.future.done():
            one.future.set_result(response)

    # -- time

    def _arm(self, deadline: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(deadline, self._look_for_overdue)

    def _look_for_overdue(self) -> None:
        self._timer = None
        if not self._waiting:
            return
        now = self._loop.time()
        first = min(one.deadline for one in self._waiting)
        if first > now:
            self._arm(first)
            return
        self.close(RequestTimeoutError(f"broker {self.address} did not answer in time"))


async def connect(address: Address, config: ClientConfig, memory: ReusedMemory) -> Connection:
    """Open a TCP connection.

    Raises:
        NetworkError: name not known, connection refused, no answer in time.
    """
    timeout_s = config.socket_connection_setup_timeout_ms / 1000
    try:
        async with asyncio.timeout(timeout_s):
            sock = await _open_socket(address, config)
    except TimeoutError:
        raise NetworkError(f"{address}: no connection within {timeout_s:g} s") from None
    loop = asyncio.get_running_loop()
    try:
        _, connection = await loop.create_connection(
            lambda: Connection(address, sock, config.client_id, config.receive_message_max_bytes, memory),
            sock=sock,
        )
    except OSError as error:
        sock.close()
        raise NetworkError(f"{address}: {_why(error)}") from error
    return connection


async def _open_socket(address: Address, config: ClientConfig) -> socket.socket:
    """Try every address that the name stands for, in order."""
    loop = asyncio.get_running_loop()
    failure: OSError | None = None
    for family, kind, protocol, _, where in await _resolve(address):
        sock = socket.socket(family, kind, protocol)
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if config.send_buffer_bytes > 0:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, config.send_buffer_bytes)
            if config.receive_buffer_bytes > 0:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, config.receive_buffer_bytes)
            await loop.sock_connect(sock, where)
        except OSError as error:
            sock.close()
            failure = error
        except BaseException:
            sock.close()
            raise
        else:
            return sock
    raise NetworkError(f"{address}: {_why(failure)}") from failure


async def _resolve(address: Address) -> list[Any]:
    """Numbers are read here; only names cost a thread and a look-up."""
    if not 0 < address.port < 65536:
        raise NetworkError(f"{address}: there is no port {address.port}")
    if not address.host.isprintable():
        raise NetworkError(f"{address}: no name of a host")
    try:
        return socket.getaddrinfo(*address, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except socket.gaierror:
        pass
    except ValueError as error:  # brokers may call themselves anything
        raise NetworkError(f"{address}: no name of a host ({error})") from error
    try:
        return await asyncio.get_running_loop().getaddrinfo(*address, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        raise NetworkError(f"{address}: host name not known ({error.strerror})") from error


def _after(chunks: Sequence[Buffer], sent: int) -> list[Buffer]:
    """What is left of the chunks after the first `sent` bytes."""
    for index, chunk in enumerate(chunks):
        view = memoryview(chunk)
        if sent < view.nbytes:
            return [view[sent:], *chunks[index + 1 :]]
        sent -= view.nbytes
    return []


def _copy_of(error: PenstockError) -> PenstockError:
    """An exception for one more waiter: a shared one would collect everybody's traceback."""
    copy = type(error)(*error.args)
    copy.__cause__ = error.__cause__
    return copy


def _why(error: BaseException | None) -> str:
    """The operating system's words for an error, in lower case and without its number."""
    if isinstance(error, OSError) and error.errno is not None:
        return os.strerror(error.errno).lower()
    return str(error) or type(error).__name__
