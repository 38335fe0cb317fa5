"""One TCP connection to one broker, for asyncio: requests are answered in order.

`Connection` drives a sans-I/O `ClientConnection` (`penstock.protocol.connection.client`), which splits the
stream into frames and matches responses to requests. `Connection` adds the socket, timeouts and futures.

- A long frame is received into one buffer of its size, and the response's `records` are views of that buffer:
  nothing is copied between the socket and the decoder.
- Any number of requests may be in flight.
- A dead connection keeps its cause, and raises it for every request in flight and every later call.
- TLS is decrypted directly into the buffer that a frame is received into.
- A request whose response is overdue ends the connection: since responses are in order, no later request can
  be answered either.

This module does not depend on the meaning of requests, nor on the broker's versions.
"""

from __future__ import annotations

import asyncio
import copy
import os
import socket
from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from penstock.client.addresses import Address
from penstock.client.cluster.other_protocols import TLS, known_beginning
from penstock.client.config import ClientConfig
from penstock.client.counters import BrokerCounters, Durations
from penstock.common.reused_buffers import ReusedMemory
from penstock.errors import (
    AuthenticationError,
    ConfigError,
    DecodeError,
    NetworkError,
    PenstockError,
    RequestTimeoutError,
)
from penstock.printable import printable
from penstock.protocol.connection.client import ClientConnection, CorrelationError, UnexpectedFrameError
from penstock.protocol.framing import FrameSizeError

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from penstock.client.cluster.login_session import LoginSession
    from penstock.protocol.message import Message
    from penstock.security.tls import TlsConnection

UNSENT_BYTES_MAX = 1 << 20
"""The number of bytes not yet accepted by the kernel above which `is_clogged` becomes True."""

UNSENT_BYTES_LOW = UNSENT_BYTES_MAX // 4
"""The number of bytes not yet accepted by the kernel below which `is_clogged` becomes False again."""

HERALD_BYTES = 16 << 10
"""The maximum number of unsent bytes passed to asyncio, which calls `resume_writing` once the kernel has
taken them.
"""

TCP_QUICKACK: int | None = getattr(socket, "TCP_QUICKACK", None)
"""The number of the socket option TCP_QUICKACK, which only Linux has; None elsewhere."""

IOV_MAX = 1024
"""The maximum number of chunks in one call of sendmsg (limits.h on Linux)."""


class AbandonedError(NetworkError):
    """The client has closed the connection on purpose, to drop a request that waits at the broker."""


class _Waiting:
    """A request in flight: the future of its response, the time it was sent, and its deadline.

    Times are seconds of the event loop's clock.
    """

    __slots__ = ("deadline", "durations", "future", "sent_at")

    def __init__(
        self, future: asyncio.Future[Any], sent_at: float, deadline: float, durations: Durations
    ) -> None:
        self.future = future
        self.sent_at = sent_at
        self.deadline = deadline
        self.durations = durations
        """The counter to which the round-trip time is added."""


class Connection(asyncio.BufferedProtocol):
    """A connection to one broker, opened by `connect`, or by `SecuredOpener` with TLS or SASL.

    Bytes that arrive through TLS are received into the buffer `ciphertext`, which all connections of a client
    share.
    """

    def __init__(
        self,
        address: Address,
        sock: socket.socket,
        client_id: str,
        frame_bytes_max: int,
        memory: ReusedMemory,
        *,
        tls: TlsConnection | None = None,
        ciphertext: memoryview | None = None,
    ) -> None:
        self.address = address
        self.cause: PenstockError | None = None
        """The error that has ended the connection; None while it is alive."""
        self.counters = BrokerCounters(str(address))
        """The counters of this broker, which a connection pool replaces by counters that all its connections
        to the broker share.
        """
        self._sock = sock
        self._frame_bytes_max = frame_bytes_max
        self._wire: ClientConnection[_Waiting] = ClientConnection(
            client_id, frame_bytes_max=frame_bytes_max, take=memory.take
        )
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._tls = tls
        self._ciphertext = None if tls is None else ciphertext
        self.ready: asyncio.Future[None] = self._loop.create_future()
        """A future that is done after the TLS handshake; without TLS, at once."""
        self.session: LoginSession | None = None
        """The SASL session, which authenticates again before it ends; None before the first login."""
        self._raw: asyncio.Future[bytes] | None = None
        """The future of the next frame if that is a raw SASL token, else None."""
        self._timer: asyncio.TimerHandle | None = None
        self._unsent: deque[memoryview] = deque()
        """The chunks that the kernel has not accepted, to be sent after those that were passed to asyncio."""
        self._unsent_size = 0
        self.is_clogged = False
        """True if more than `UNSENT_BYTES_MAX` bytes are unsent, so that nothing more should be sent now."""
        self._writable_callbacks: list[Callable[[], None]] = []

    def __repr__(self) -> str:
        state = f"dead: {self.cause}" if self.cause else f"{self._wire.requests_in_flight} requests in flight"
        return printable(f"<Connection {self.address} ({state})>")

    @property
    def is_idle(self) -> bool:
        """True if no request is in flight, and none is held back until a login ends."""
        return not (self._wire.requests_in_flight or (self.session is not None and self.session.is_holding))

    @property
    def requests_in_flight(self) -> int:
        """The number of requests that await their responses."""
        return self._wire.requests_in_flight

    def first_due(self) -> tuple[int, str] | None:
        """Return correlation id and API name of the oldest request in flight, or None. Thread-safe."""
        return self._wire.oldest()

    @property
    def unsent_bytes(self) -> int:
        """The number of bytes that the kernel has not accepted, plus one if requests wait for a login."""
        held = self.session is not None and self.session.is_holding
        in_asyncio = 0 if self._transport is None else self._transport.get_write_buffer_size()
        return held + self._unsent_size + in_asyncio

    @property
    def is_receiving(self) -> bool:
        """True if part of a response has arrived."""
        return self._wire.is_receiving

    def request(
        self, message: Message, version: int, timeout_s: float, *, at_once: bool = False
    ) -> asyncio.Future[Any]:
        """Send `message` and return the future of its response.

        While the connection authenticates again (KIP-368), the request is held back, unless `at_once`. The
        future raises NetworkError if the connection ends first, RequestTimeoutError if no response comes
        within `timeout_s` seconds, DecodeError if the response cannot be decoded.

        Raises:
            NetworkError: the connection is dead already.
            EncodeError: the message cannot be encoded in this version.
        """
        if self.cause is not None or self._transport is None:
            raise self._not_alive()
        if self.session is not None and not at_once and self.session.must_wait():
            return self.session.hold(message, version, timeout_s)
        future: asyncio.Future[Any] = self._loop.create_future()
        now = self._loop.time()
        deadline = now + timeout_s
        counters = self.counters
        durations = counters.durations_of(type(message))
        chunks = self._wire.request(message, version, _Waiting(future, now, deadline, durations))
        counters.tx += 1
        counters.tx_bytes += sum(map(len, chunks))
        try:
            self._write(chunks)
        except PenstockError:
            if future.done():
                future.exception()  # raised here: asyncio need not report it once more
            raise
        if self._timer is None or deadline < self._timer.when():
            self._arm(deadline)
        return future

    def send_only(self, message: Message, version: int, *, at_once: bool = False) -> None:
        """Send a request that has no response (Produce with acks=0). During a login, it is held back.

        Raises:
            NetworkError: the connection is dead already.
            EncodeError: the message cannot be encoded in this version.
        """
        if self.cause is not None or self._transport is None:
            raise self._not_alive()
        if self.session is not None and not at_once and self.session.must_wait():
            self.session.hold_unanswered(message, version)
            return
        chunks = self._wire.request_without_answer(message, version)
        self.counters.tx += 1
        self.counters.tx_bytes += sum(map(len, chunks))
        self._write(chunks)

    async def exchange_token(self, token: bytes, timeout_s: float, *, is_answered: bool) -> bytes:
        """Send a raw SASL token, as to brokers before 1.0; return the response, or b"" if not `is_answered`.

        Raises:
            NetworkError: the connection is dead, or ends.
            RequestTimeoutError: no response within `timeout_s` seconds. The connection is dead.
        """
        if self.cause is not None:
            raise self._not_alive()
        if is_answered:
            self._wire.expect_raw_frames(True)
            self._raw = self._loop.create_future()
        raw = self._raw
        self._write([len(token).to_bytes(4, "big"), token])
        if not is_answered or raw is None:
            return b""
        try:
            async with asyncio.timeout(timeout_s):
                return await raw
        except TimeoutError:
            error = RequestTimeoutError(f"broker {self.address} did not answer in time while authenticating")
            self.close(error)
            raise error from None

    def when_writable(self, callback: Callable[[], None]) -> None:
        """Call `callback` once the kernel has taken most of the sent bytes, or the connection is dead."""
        if callback not in self._writable_callbacks:
            self._writable_callbacks.append(callback)

    def close(self, cause: PenstockError | None = None) -> None:
        """Close the connection. Requests in flight raise `cause`, by default a NetworkError."""
        if self.cause is not None:
            return
        if self._tls is not None and cause is None:
            self._tls.close()
            try:
                self._flush()
            except PenstockError:
                return  # the kernel refused, and that has closed the connection
        self.cause = cause or NetworkError(f"the connection to {self.address} was closed by this client")
        self._end_timers()
        if self._transport is not None:
            self._transport.abort()
        for waiting in self._wire.abandon():
            if not waiting.future.done():
                waiting.future.set_exception(_copy_of(self.cause))
        self._unsent.clear()
        self._unsent_size = 0
        self._unclog()
        held = [] if self.session is None else self.session.drop()
        for future in (self.ready, self._raw, *held):
            if future is not None and not future.done():
                future.set_exception(self._not_alive())
                future.exception()  # marks it as retrieved: asyncio need not report it

    def hand_over(self) -> tuple[asyncio.Transport, TlsConnection | None]:
        """Give up the open connection: return its transport, and its TLS connection or None.

        This object is dead afterwards.

        The caller must set another protocol object on the transport at once.

        Raises:
            NetworkError: the connection is dead already.
            ConfigError: a request is in flight.
        """
        if self.cause is not None or self._transport is None:
            raise self._not_alive()
        if not self.is_idle or self.is_receiving:
            raise ConfigError(
                f"the connection to {self.address} cannot be given away: a request is in flight"
            )
        transport, self._transport = self._transport, None
        transport.set_write_buffer_limits(high=UNSENT_BYTES_MAX)
        while self._unsent:
            transport.write(self._unsent.popleft())
        self.cause = NetworkError(f"the connection to {self.address} has another owner")
        self._end_timers()
        return transport, self._tls

    def _end_timers(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self.session is not None:
            self.session.end()

    # -- sending

    def _not_alive(self) -> PenstockError:
        return _copy_of(self.cause or NetworkError(f"not connected to {self.address}"))

    def _write(self, chunks: Sequence[Buffer]) -> None:
        """Send chunks in order. All bytes to the broker pass through this method.

        Bytes that the kernel does not take at once are sent later. They are not copied: until they are sent,
        the chunks must not change.

        Raises:
            NetworkError: the kernel refuses the bytes; the connection is dead.
        """
        transport, tls = self._transport, self._tls
        assert transport is not None
        if tls is not None:
            for chunk in chunks:
                tls.write(chunk)
            chunks = tls.to_send()
            if not chunks:
                return
        rest: Sequence[Buffer] = chunks
        if not self._unsent and not transport.get_write_buffer_size():
            rest = _after(chunks, self._send(chunks[:IOV_MAX]))
            if self.cause is not None:
                raise _copy_of(self.cause)
        if rest:
            for chunk in rest:
                view = memoryview(chunk)
                if view.nbytes:
                    self._unsent.append(view)
                    self._unsent_size += view.nbytes
            self._send_unsent(is_full=True)
            self.is_clogged = self.is_clogged or self._unsent_size > UNSENT_BYTES_MAX

    def _send(self, chunks: Sequence[Buffer]) -> int:
        """Pass chunks to the kernel, and return how many bytes it takes. An error ends the connection."""
        try:
            return self._sock.sendmsg(chunks)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError as error:
            self.close(NetworkError(f"sending to {self.address} failed: {_why(error)}"))
            return 0

    def _send_unsent(self, *, is_full: bool = False) -> None:
        """Pass waiting bytes to the kernel; skip the first attempt if the kernel `is_full`.

        asyncio would copy bytes that it must send later (until Python 3.12), so it gets only a small part of
        those that the kernel does not take. It calls `resume_writing` when that part is sent.
        """
        transport, unsent = self._transport, self._unsent
        assert transport is not None
        while unsent and not transport.get_write_buffer_size():
            if not is_full:
                self._drop_sent(self._send(list(islice(unsent, IOV_MAX))))
            is_full = False
            if unsent:
                herald = unsent[0][:HERALD_BYTES]
                self._drop_sent(herald.nbytes)
                transport.write(herald)

    def _drop_sent(self, count: int) -> None:
        """Remove the first `count` bytes of those that wait for the kernel, since they were sent."""
        unsent = self._unsent
        self._unsent_size -= count
        while count:
            size = unsent[0].nbytes
            if count < size:
                unsent[0] = unsent[0][count:]
                return
            unsent.popleft()
            count -= size

    def _flush(self) -> None:
        """Send the pending ciphertext of the TLS connection, if the connection is alive."""
        if self.cause is None and self._transport is not None:
            self._write(())

    # -- receiving

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(high=0)
        if self._tls is None:
            self.ready.set_result(None)
            return
        self._tls.start()
        self._flush()

    def get_buffer(self, sizehint: int) -> Buffer:
        return self._wire.get_buffer() if self._ciphertext is None else self._ciphertext

    def buffer_updated(self, nbytes: int) -> None:
        tls = self._tls
        if tls is None or self._ciphertext is None:
            self._received(nbytes)
            return
        try:
            tls.receive(self._ciphertext[:nbytes])
            if tls.is_ready and not self.ready.done():
                self.ready.set_result(None)
            while self.cause is None and (count := tls.read_into(self._wire.get_buffer())):
                self._received(count)
        except AuthenticationError as error:
            self._flush()
            self.close(type(error)(f"{self.address}: {error}"))
            return
        self._flush()
        if tls.is_ended and self.cause is None:
            self.connection_lost(None)

    def _received(self, count: int) -> None:
        """Process `count` new bytes of the stream, which are in the frame buffer already."""
        wire = self._wire
        counters = self.counters
        try:
            wire.received(count)
            if self._raw is not None:
                self._take_token(self._raw)
                return
            counters.rx_bytes += count
            while (answer := wire.next_answer()) is not None:
                waiting, response = answer
                counters.rx += 1
                waiting.durations.add(self._loop.time() - waiting.sent_at)
                if not waiting.future.done():
                    waiting.future.set_result(response)
        except DecodeError as error:
            self.close(self._described(error))
            return
        if TCP_QUICKACK is not None and wire.is_receiving_long_answer:
            # The rest may be waiting for this acknowledgement, which the kernel would delay by 40 ms.
            # The kernel clears the option by itself, so it is set after each part.
            self._sock.setsockopt(socket.IPPROTO_TCP, TCP_QUICKACK, True)

    def _take_token(self, raw: asyncio.Future[bytes]) -> None:
        frame = self._wire.next_frame()
        if frame is not None:
            self._raw = None
            self._wire.expect_raw_frames(False)
            if not raw.done():
                raw.set_result(bytes(frame))

    def resume_writing(self) -> None:
        if self.cause is None and self._transport is not None:
            self._send_unsent()
        if self._unsent_size <= UNSENT_BYTES_LOW:
            self._unclog()

    def _unclog(self) -> None:
        self.is_clogged = False
        callbacks, self._writable_callbacks = self._writable_callbacks, []
        for callback in callbacks:
            callback()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        if self.cause is None:
            self.close(self._why_lost(exc))

    def _why_lost(self, exc: Exception | None) -> NetworkError:
        ended = f"broker {self.address} ended the connection"
        if self._tls is not None and not self._tls.is_ready:
            try:
                self._tls.receive_end()
            except AuthenticationError as error:
                return NetworkError(f"{self.address}: {error}")
            return NetworkError(f"{ended} when TLS began: does this port speak TLS?")
        if self.session is not None and self.session.has_expired:
            return NetworkError(f"{ended}: the session has expired")
        due = self._wire.requests_in_flight
        while_due = f" while {due} answers were due" if due else ""
        why = f": {_why(exc)}" if exc is not None else ""
        return NetworkError(f"{ended}{while_due}{why}")

    def _described(self, error: DecodeError) -> PenstockError:
        """Return an error that names the broker, and adds that its data are TLS or HTTP if they are."""
        if isinstance(error, FrameSizeError):
            other = known_beginning(error.beginning)
            if other is TLS:
                return AuthenticationError(f"{self.address} {other}")
            if other is not None:
                return FrameSizeError(f"{self.address} {other}", error.size)
            return FrameSizeError(
                f"{self.address} announces a frame of {error.size} bytes, 4 to {self._frame_bytes_max} are "
                "expected: is it a Kafka broker? (receive.message.max.bytes is the limit)",
                error.size,
            )
        if isinstance(error, UnexpectedFrameError | CorrelationError):
            return type(error)(f"{self.address} contradicts the protocol: {error}")
        return error

    # -- time

    def _arm(self, deadline: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(deadline, self._look_for_overdue)

    def _look_for_overdue(self) -> None:
        self._timer = None
        first = min((waiting.deadline for waiting in self._wire.tokens()), default=None)
        if first is None:
            return
        if first > self._loop.time():
            self._arm(first)
            return
        self.counters.timeouts += 1
        self.close(RequestTimeoutError(f"broker {self.address} did not answer in time"))


async def connect(address: Address, config: ClientConfig, memory: ReusedMemory) -> Connection:
    """Return a new TCP connection to a broker.

    Raises:
        NetworkError: the host name is not known, the connection is refused, or there is no answer in time.
    """
    sock = await open_socket(address, config)
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


async def open_socket(address: Address, config: ClientConfig) -> socket.socket:
    """Return a connected socket.

    Raises:
        NetworkError: the host name is not known, the connection is refused, or there is no answer in time.
    """
    timeout_s = config.socket_connection_setup_timeout_ms / 1000
    try:
        async with asyncio.timeout(timeout_s):
            return await _open_socket(address, config)
    except TimeoutError:
        raise NetworkError(f"{address}: no connection within {timeout_s:g} s") from None


async def _open_socket(address: Address, config: ClientConfig) -> socket.socket:
    """Return a socket connected to the first address of the host name that accepts a connection."""
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
    """Return the socket addresses of a host. An IP address needs no look-up, and no thread for it.

    If no thread can be started because the interpreter exits, the look-up blocks the event loop. This lets a
    producer that is flushed at exit connect once more.
    """
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
        try:
            return await asyncio.get_running_loop().getaddrinfo(*address, type=socket.SOCK_STREAM)
        except RuntimeError:  # the executor has been shut down
            return socket.getaddrinfo(*address, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        raise NetworkError(f"{address}: host name not known ({error.strerror})") from error


def _after(chunks: Sequence[Buffer], sent: int) -> list[Buffer]:
    """Return the chunks that are left after the first `sent` bytes."""
    for index, chunk in enumerate(chunks):
        view = memoryview(chunk)
        if sent < view.nbytes:
            return [view[sent:], *chunks[index + 1 :]]
        sent -= view.nbytes
    return []


def _copy_of(error: PenstockError) -> PenstockError:
    """Return a copy of an exception for one more caller, since a shared one would collect all tracebacks."""
    duplicate = copy.copy(error)
    duplicate.__cause__ = error.__cause__
    return duplicate


def _why(error: BaseException | None) -> str:
    """Return the operating system's message for an error, in lower case and without its number."""
    if isinstance(error, OSError) and error.errno is not None:
        return os.strerror(error.errno).lower()
    return str(error) or type(error).__name__
