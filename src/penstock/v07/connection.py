"""One connection to one 0.7 broker: blocking, one request at a time, opened again when it breaks.

If the connection breaks, a request with a response is repeated once on a new connection, since reading twice
does no harm. A PRODUCE is not repeated, because it has no response in Kafka 0.7: earlier messages may or may
not have arrived.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import threading
from collections.abc import Iterator, Sequence
from types import TracebackType

from penstock.common.reused_buffers import ReusedMemory
from penstock.errors import DecodeError, EncodeError, KafkaError, NetworkError
from penstock.v07.wire import (
    Error,
    FetchPart,
    OffsetsPart,
    Part,
    ProducePart,
    RequestType,
    WireRequest,
    decode_multifetch,
    decode_offsets,
    decode_response,
    encode_request,
)

DEFAULT_TIMEOUT_S = 30.0
"""The default timeout in seconds: `socket.timeout.ms` of the 0.7 clients."""

FRAME_BYTES_MAX = 1 << 30

REUSED_BYTES_MIN = 256 << 10
"""The minimum size in bytes of responses that reuse memory; smaller ones get new memory."""

TCP_QUICKACK: int | None = getattr(socket, "TCP_QUICKACK", None)

_CLOSED = "this client has closed the connection"

_ERROR_TEXTS = {
    Error.UNKNOWN: "the broker refuses (an illegal topic name, or an error it has no number for)",
    Error.OFFSET_OUT_OF_RANGE: "the offset is outside the log",
    Error.WRONG_PARTITION: "the broker has no such partition",
    Error.INVALID_MESSAGE: "a message fails its checksum",
    Error.INVALID_FETCH_SIZE: "the fetch size is not valid",
}


class Fetched07:
    """The fetch result of one partition: bytes from `part.offset` on, or an error."""

    __slots__ = ("data", "error", "part")

    def __init__(self, part: FetchPart, error: Error, data: memoryview) -> None:
        self.part = part
        self.error = error
        self.data = data

    def checked(self) -> memoryview:
        """Return the fetched message set as bytes.

        Raises:
            KafkaError: the broker has answered with an error; `code` is 0.7's.
        """
        if self.error is not Error.NONE:
            topic, partition, offset, _ = self.part
            raise KafkaError(
                int(self.error),
                self.error.name,
                f"fetching {topic}-{partition} at byte {offset}: {_ERROR_TEXTS[self.error]}",
            )
        return self.data


class Connection07:
    """The connection to a broker at one address, opened on first use. Threads may share it.

    Only the thread that holds the lock closes the socket. If another thread closed the socket during a wait
    for a response, the process could reuse the file descriptor for another socket, and the waiting thread
    would read from that socket.
    """

    def __init__(self, host: str, port: int, *, timeout_s: float = DEFAULT_TIMEOUT_S) -> None:
        self.host = host
        self.port = port
        self._timeout_s = timeout_s
        self._socket: socket.socket | None = None
        self._lock = threading.Lock()
        self._is_closed = False
        self._asked = 0
        self._due: tuple[int, str] | None = None
        self._memory = ReusedMemory(REUSED_BYTES_MIN)

    def __repr__(self) -> str:
        return f"<Connection07 {self.host}:{self.port}>"

    def __enter__(self) -> Connection07:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def address(self) -> str:
        """The broker as text for messages: "Kafka 0.7 broker host:port"."""
        return f"Kafka 0.7 broker {self.host}:{self.port}"

    def first_due(self) -> tuple[int, str] | None:
        """Return (sequence number, type) of the request that waits for its response, or None. Thread-safe."""
        return self._due

    def close(self) -> None:
        """Close the connection. Calls that connect or wait for a response raise NetworkError soon."""
        self._is_closed = True
        used = self._socket
        if used is not None:
            with contextlib.suppress(OSError):
                used.shutdown(socket.SHUT_RDWR)
        if self._lock.acquire(blocking=False):
            self._release()

    # --- requests ----------------------------------------------------------------------------------------

    def produce(self, parts: Sequence[ProducePart]) -> None:
        """Send message sets, several as one MULTIPRODUCE. Return when they are sent: nothing is acknowledged.

        Raises:
            EncodeError: a topic is not ASCII. Brokers of 0.7.2 accept it, but their own clients cannot read
                it.
            NetworkError: the broker cannot be reached, or has closed the connection. Earlier messages may
                have arrived.
        """
        for part in parts:
            if not part.topic.isascii():
                raise EncodeError(f"topic {part.topic!r}: names of topics are ASCII in Kafka 0.7")
        kind = RequestType.PRODUCE if len(parts) == 1 else RequestType.MULTIPRODUCE
        frame = encode_request(WireRequest(kind, parts))
        with self._used():
            try:
                connected = self._connected()
                self._notice_hangup(connected)
                connected.sendall(frame)
            except OSError as error:
                self._disconnect()
                raise self._broken("sending messages", error) from error

    def fetch(self, part: FetchPart) -> Fetched07:
        """Fetch messages of one partition. A Kafka 0.7 broker answers at once, even without messages.

        Raises:
            NetworkError: the broker cannot be reached, or has closed the connection twice.
            DecodeError: the response makes no sense.
        """
        error, data = decode_response(self._ask(RequestType.FETCH, [part]))
        return Fetched07(part, error, data)

    def multifetch(self, parts: Sequence[FetchPart]) -> list[Fetched07]:
        """Return the fetch results of several partitions, from one request. Raises as `fetch`."""
        _, payload = decode_response(self._ask(RequestType.MULTIFETCH, parts))
        answers = decode_multifetch(payload, len(parts))
        return [Fetched07(part, *answer) for part, answer in zip(parts, answers, strict=True)]

    def offsets(self, part: OffsetsPart) -> list[int]:
        """Request the offsets of segments from before a time (OFFSETS), and return them, newest first.

        Raises:
            NetworkError: as `fetch`; also if no such partition can exist: the broker then closes the
                connection.
            DecodeError: the response makes no sense.
        """
        _, payload = decode_response(self._ask(RequestType.OFFSETS, [part]))
        return decode_offsets(payload)

    def has_partition(self, topic: str, partition: int) -> bool:
        """Return True if the broker has this partition, or would create it.

        Raises:
            KafkaError: an illegal topic name.
            NetworkError, DecodeError: as `fetch`.
        """
        answer = self.fetch(FetchPart(topic, partition, 0, 0))
        if answer.error is Error.UNKNOWN:
            answer.checked()
        return answer.error is not Error.WRONG_PARTITION

    # --- the socket --------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _used(self, request: str | None = None) -> Iterator[None]:
        """Hold the lock on the socket during a ``with`` block. Meanwhile, `first_due` returns `request`."""
        self._lock.acquire()
        try:
            if request is not None:
                self._asked += 1
                self._due = self._asked, request
            yield
        finally:
            self._due = None
            self._release()

    def _release(self) -> None:
        """Release the lock, and close the socket if `close` was called while the lock was held."""
        while True:
            if self._is_closed:
                self._disconnect()
            self._lock.release()
            if not self._is_closed or self._socket is None or not self._lock.acquire(blocking=False):
                return

    def _ask(self, kind: RequestType, parts: Sequence[Part]) -> memoryview:
        frame = encode_request(WireRequest(kind, parts))
        with self._used(kind.name):
            is_fresh = self._socket is None
            try:
                return self._exchange(frame)
            except OSError as error:
                self._disconnect()
                if is_fresh or self._is_closed:
                    raise self._broken(f"a request of type {kind.name}", error) from error
            try:
                return self._exchange(frame)
            except OSError as error:
                self._disconnect()
                raise self._broken(f"a request of type {kind.name}", error) from error

    def _exchange(self, frame: bytes) -> memoryview:
        connected = self._connected()
        connected.sendall(frame)
        size = int.from_bytes(self._receive(connected, 4), "big", signed=True)
        if not 2 <= size <= FRAME_BYTES_MAX:
            self._disconnect()
            raise DecodeError(
                f"{self.host}:{self.port} announces a response of {size} bytes: is it Kafka 0.7?"
            )
        return self._receive(connected, size)

    def _connected(self) -> socket.socket:
        if self._is_closed:
            raise OSError(_CLOSED)
        if self._socket is None:
            self._socket = self._connect()
        return self._socket

    def _connect(self) -> socket.socket:
        """Return a socket connected to the first address that accepts. `close` can end each attempt."""
        failure: OSError | None = None
        for family, kind, protocol, _, address in socket.getaddrinfo(
            self.host, self.port, type=socket.SOCK_STREAM
        ):
            self._socket = tried = socket.socket(family, kind, protocol)
            try:
                tried.settimeout(self._timeout_s)
                tried.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if not self._is_closed:
                    tried.connect(address)
                if self._is_closed:  # a socket that was shut down before it connects may say that it has
                    raise OSError(_CLOSED)
                return tried
            except OSError as error:
                failure = error
                self._disconnect()
        raise failure or OSError(f"{self.host} has no address")

    def _receive(self, connected: socket.socket, size: int) -> memoryview:
        view = self._memory.take(size)
        filled = 0
        while filled < size:
            count = connected.recv_into(view[filled:])
            if not count:
                raise OSError("the broker has closed the connection")
            filled += count
            if filled < size and TCP_QUICKACK is not None:
                # What is missing may wait for this acknowledgement, which the kernel would delay.
                connected.setsockopt(socket.IPPROTO_TCP, TCP_QUICKACK, True)
        return view

    def _notice_hangup(self, connected: socket.socket) -> None:
        """Raise OSError if the broker has closed the connection: sending a PRODUCE may not fail even then."""
        readable = select.poll()
        readable.register(connected, select.POLLIN)
        if readable.poll(0):
            raise OSError("the broker has closed the connection; what was sent last may not have been stored")

    def _disconnect(self) -> None:
        """Close the socket. The caller holds the lock."""
        broken, self._socket = self._socket, None
        if broken is not None:
            broken.close()

    def _broken(self, doing: str, error: OSError) -> NetworkError:
        why = os.strerror(error.errno).lower() if error.errno else str(error)
        return NetworkError(f"{doing}: {self.address}: {why}")
