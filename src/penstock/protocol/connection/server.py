"""The broker's end of a connection, without I/O: split requests from bytes, and queue answers in order.

How to drive a `ServerConnection`, over any transport:

    count = sock.recv_into(connection.get_buffer())         # or a TLS layer decrypts into it
    connection.received(count)                              # or only_request(count) first, which is shorter
    while (frame := connection.next_request()) is not None:
        connection.respond(answer_to(frame))                # or complete(), or either of them later
    sock.sendall(connection.data_to_send())

As in Apache Kafka, one request is open at a time: `next_request` returns None until the previous one has
been answered, so answers keep the order of requests. After `received`, call `next_request` until it
returns None (with `is_paused` while no request can be taken): that call moves the rest of the
scratch buffer to memory of this connection.
"""

from __future__ import annotations

from struct import Struct
from typing import Protocol

from penstock.protocol.framing import FRAME_BYTES_MAX, ConnectionStateError, check_size

_unpack_size = Struct(">i").unpack_from

FRAME_START_BYTES = 64 << 10
"""The first size in bytes of a new connection's buffer for an incomplete frame. The buffer doubles as bytes
arrive.
"""

BACKLOG_BYTES_MAX = 64 << 10
"""The maximum number of bytes that are read ahead while a request is open. Reading ahead shows if the peer
has closed the connection.
"""

REQUEST_BYTES_MIN = 1
"""The smallest size of a frame in bytes. Frames that are shorter than a request header are refused later,
by the parser of headers.
"""


class Memory(Protocol):
    """An object that lends buffers to connections, for requests that arrive in several reads."""

    def lend(self, size: int) -> bytearray | None:
        """Return a buffer of at least `size` bytes; None to refuse, which ends the connection."""
        ...

    def give_back(self, buffer: bytearray) -> None:
        """Take back a buffer that `lend` has returned."""
        ...


class NoMemory:
    """A `Memory` that lends nothing, for a connection that has ended."""

    def lend(self, size: int) -> bytearray | None:
        return None

    def give_back(self, buffer: bytearray) -> None:
        pass


class ServerConnection:
    """Splits requests from a stream, and queues answers in the order of the requests.

    Small requests are views of the scratch buffer that all connections share. A request that arrives in parts
    gets memory that grows with the bytes that have arrived: a size field alone allocates none. Idle
    connections hold no memory.

    Args:
        scratch: the buffer into which every connection reads first. It is free between two reads.
        memory: the lender of buffers.
        frame_bytes_max: the maximum size of a request in bytes.
    """

    __slots__ = (
        "_backlog",
        "_buffer",
        "_end",
        "_filled",
        "_frame",
        "_has_ended",
        "_is_open",
        "_largest",
        "_memory",
        "_out",
        "_overtaken",
        "_position",
        "_scratch",
        "_size",
        "_size_max",
        "queued_bytes",
        "rest",
    )

    def __init__(self, scratch: memoryview, memory: Memory, frame_bytes_max: int = FRAME_BYTES_MAX) -> None:
        self._scratch = scratch
        self._memory = memory
        self._size_max = frame_bytes_max
        self.rest: memoryview | None = None
        """The buffer with received bytes that are not split into requests yet: scratch buffer or backlog.

        None after `next_request` has returned None. Drivers read it to see if there are more bytes."""
        self._position = self._end = 0
        """The start of the range of `rest` that is not split into requests yet; `_end` is its end."""
        self._backlog = bytearray()
        self._buffer: bytearray | None = None
        """The buffer that was lent for the arriving frame, or for the last request."""
        self._frame: memoryview | None = None
        """The part of `_buffer` that receives the arriving frame."""
        self._size = self._filled = 0
        self._largest = FRAME_START_BYTES
        self._is_open = self._has_ended = False
        self._overtaken = 0
        self._out: list[bytes] = []
        self.queued_bytes = 0
        """The number of bytes of answers that `data_to_send` will return."""

    def limit_frames(self, frame_bytes_max: int) -> None:
        """Set the maximum size in bytes of the frames that follow."""
        self._size_max = frame_bytes_max

    # --- bytes in ----------------------------------------------------------------------------------------

    def get_buffer(self) -> memoryview:
        """Return the buffer for the next bytes of the stream."""
        frame = self._frame
        return self._scratch if frame is None else frame[self._filled :]

    def received(self, count: int) -> None:
        """Process `count` bytes that were written to the beginning of the buffer from `get_buffer`.

        Raises:
            ConnectionStateError: the buffer is smaller than `count`, or after the previous call,
                `next_request` was not called until it returned None.
        """
        frame = self._frame
        if frame is not None:
            self._filled += count
            if not 0 <= count <= self._filled <= len(frame):
                raise ConnectionStateError(f"{count} bytes received, which the lent buffer cannot hold")
            if self._filled == len(frame) < self._size:
                self._grow(frame)
            return
        scratch = self._scratch
        if self.rest is not None or not 0 <= count <= len(scratch):
            raise ConnectionStateError(f"{count} bytes received, which the lent buffer cannot hold")
        if self._backlog:
            self._backlog += scratch[:count]
        elif not self._has_ended:
            self.rest, self._position, self._end = scratch, 0, count

    def only_request(self, count: int) -> memoryview | None:
        """Take `count` received bytes if they are exactly one request, and open it; else return None.

        A shortcut for the usual case, instead of `received` and `next_request`. If the result is None, no
        bytes have been taken, and `received` must be called. The view is valid until the next call.
        """
        # A request that has its own memory, or has had it until now, is the business of `next_request`.
        if self._buffer is None and not (self._is_open or self._backlog or self._has_ended):
            scratch, size = self._scratch, count - 4
            if REQUEST_BYTES_MIN <= size <= self._size_max and _unpack_size(scratch)[0] == size:
                self._is_open = True
                return scratch[4:count]
        return None

    def next_request(self, is_paused: bool = False) -> memoryview | None:
        """Open the next complete request, and return its bytes without the size field.

        Returns None while a request is open, if `is_paused`, or if more bytes must arrive. The view is valid
        until the next call.

        Raises:
            FrameSizeError: the size of a frame is outside the limits. The connection has ended.
        """
        if self._buffer is not None and self._frame is None:
            self._return_buffer()
        if is_paused or self._is_open or self._has_ended:
            self._keep_rest()
            return None
        data = self.rest
        if data is None:
            frame = self._frame
            if frame is not None:
                if self._filled < self._size:
                    return None
                self._largest = max(self._largest, self._size)
                self._frame = None
                self._is_open = True
                return frame
            if not self._backlog:
                return None
            self.rest = data = memoryview(self._backlog)
            self._backlog = bytearray()
            self._position, self._end = 0, len(data)
        position = self._position
        start = position + 4
        if start > self._end:
            self._keep_rest()
            return None
        size = _unpack_size(data, position)[0]
        if not REQUEST_BYTES_MIN <= size <= self._size_max:
            self.end()
            check_size(size, REQUEST_BYTES_MIN, self._size_max)
        stop = start + size
        if stop < self._end:
            self._position = stop
        else:
            self.rest = None
            if stop > self._end:
                self._begin(size, data[start : self._end])
                return None
        self._is_open = True
        return data[start:stop]

    @property
    def is_full(self) -> bool:
        """True if the driver should stop receiving until the open request is answered."""
        if self._frame is not None:
            return self._filled == self._size
        return len(self._backlog) >= BACKLOG_BYTES_MAX

    @property
    def holds_buffer(self) -> bool:
        """True if this connection holds a lent buffer for a frame."""
        return self._buffer is not None

    @property
    def pending_bytes(self) -> int:
        """The number of received bytes that do not form a complete request yet, including its size field."""
        cut = 0 if self.rest is None else self._end - self._position
        return cut + len(self._backlog) + (0 if self._frame is None else 4 + self._filled)

    # --- answers out -------------------------------------------------------------------------------------

    def respond(self, answer: bytes) -> None:
        """Queue the answer to the open request: a whole frame, including its size.

        Raises:
            ConnectionStateError: no request is open.
        """
        if self._is_open:
            self._is_open = False
        else:
            self.complete()
        self._out.append(answer)
        self.queued_bytes += len(answer)

    def complete(self) -> None:
        """Close the open request without an answer: its API has none, or the driver has sent one itself.

        Raises:
            ConnectionStateError: no request is open.
        """
        if self._is_open:
            self._is_open = False
        elif self._overtaken:
            self._overtaken -= 1
        else:
            raise ConnectionStateError("an answer, and no request is open")

    def set_aside(self) -> None:
        """Let later requests be answered before the open one: a fault that tests inject on purpose.

        Raises:
            ConnectionStateError: no request is open.
        """
        if not self._is_open:
            raise ConnectionStateError("no request is open that could be set aside")
        self._is_open = False
        self._overtaken += 1

    @property
    def is_open(self) -> bool:
        """True if a request was returned that has not been answered yet."""
        return self._is_open

    def data_to_send(self) -> bytes:
        """Remove and return the queued answers, joined."""
        out = self._out
        if not out:
            return b""
        self._out = []
        self.queued_bytes = 0
        return out[0] if len(out) == 1 else b"".join(out)

    # --- the end -----------------------------------------------------------------------------------------

    def drop_frame(self) -> None:
        """Release the buffer of an incomplete request. No more requests can be read afterwards."""
        self._frame = None
        if self._buffer is not None:
            self._return_buffer()

    def end(self) -> None:
        """Refuse further requests, and release all memory. Queued answers can still be sent."""
        self._has_ended = True
        self.rest = None
        self._backlog = bytearray()
        self.drop_frame()
        self._memory = NoMemory()

    # --- memory ------------------------------------------------------------------------------------------

    def _keep_rest(self) -> None:
        """Copy the unprocessed bytes of the scratch buffer to the backlog.

        Other connections will overwrite the scratch buffer.
        """
        data = self.rest
        if data is not None:
            self.rest = None
            self._backlog += data[self._position : self._end]

    def _begin(self, size: int, arrived: memoryview) -> None:
        self._size = size
        self._filled = len(arrived)
        frame = self._lend(min(size, max(self._largest, 2 * len(arrived))))
        if frame is not None:
            frame[: len(arrived)] = arrived

    def _grow(self, older: memoryview) -> None:
        buffer, memory = self._buffer, self._memory
        assert buffer is not None
        self._buffer = None
        frame = self._lend(min(self._size, 2 * len(older)))
        if frame is not None:
            frame[: self._filled] = older[: self._filled]
        memory.give_back(buffer)  # to the lender, even where it refuses more and the connection has ended

    def _lend(self, size: int) -> memoryview | None:
        self._frame = None
        buffer = self._memory.lend(size)
        if buffer is None:
            self.end()
            return None
        self._buffer = buffer
        self._frame = frame = memoryview(buffer)[:size]
        return frame

    def _return_buffer(self) -> None:
        buffer, self._buffer = self._buffer, None
        assert buffer is not None
        self._memory.give_back(buffer)
