"""Split a stream of bytes into frames: four bytes of size, big-endian, then as many bytes.

How to drive a `FrameReader`, from any source of bytes:

    buffer = reader.get_buffer()        # as asyncio.BufferedProtocol.get_buffer
    count = sock.recv_into(buffer)      # or ssl.SSLObject.read(len(buffer), buffer), or a copy
    reader.received(count)
    while (frame := reader.next_frame()) is not None:
        ...

A TLS layer repeats the first three lines until it has no plaintext left (`ssl.SSLWantReadError`): call
`get_buffer` each time, since `next_frame` may have changed the buffer for the next bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from penstock.protocol.connection.errors import ConnectionStateError, FrameSizeError

FRAME_BYTES_MAX = 100 * 1024 * 1024
"""The greatest frame in bytes that a broker accepts by default: Kafka's `socket.request.max.bytes`."""

SCRATCH_BYTES = 16 << 10
"""The size of the scratch buffer. Frames that fit share it; longer ones get a buffer of their own."""

GROWTH_START_BYTES = 64 << 10
"""The first size of a long frame's buffer, if the buffer grows with the bytes that have arrived."""


def check_size(size: int, size_min: int, size_max: int) -> None:
    """Check the size that a frame announces.

    Raises:
        FrameSizeError: the size is below `size_min` or above `size_max`.
    """
    if not size_min <= size <= size_max:
        raise FrameSizeError(f"frame of {size} bytes, {size_min} to {size_max} are allowed", size)


def new_buffer(size: int) -> memoryview:
    """Return a writable buffer of `size` zero bytes."""
    return memoryview(bytearray(size))


class FrameReader:
    """Splits a stream into frames. It has a buffer of its own, and the frames belong to the caller.

    `size_min` and `take` may be changed between two frames.

    The frames do not depend on how the bytes are divided into reads. A size is checked before memory is
    allocated for it.

    Args:
        size_max: the most bytes of a frame, without the four bytes of its size.
        size_min: the fewest bytes of a frame.
        take: returns a writable view of at least 1 byte for a long frame.
        grows: True if the buffer of a long frame starts small and doubles as bytes arrive. That costs
            copies, but a peer that announces much and sends little gets little memory.
    """

    __slots__ = (
        "_end",
        "_filled",
        "_frame",
        "_grows",
        "_position",
        "_scratch",
        "_size",
        "_size_max",
        "size_min",
        "take",
    )

    def __init__(
        self,
        size_max: int = FRAME_BYTES_MAX,
        *,
        size_min: int = 0,
        take: Callable[[int], memoryview] = new_buffer,
        grows: bool = True,
    ) -> None:
        self._size_max = size_max
        self.size_min = size_min
        self.take = take
        self._grows = grows
        self._scratch = new_buffer(SCRATCH_BYTES)
        self._position = self._end = 0
        """The range of the scratch buffer with received bytes that are not split into frames yet."""
        self._frame: memoryview | None = None
        """The buffer of a long frame that is arriving."""
        self._size = self._filled = 0
        """The size of the long frame in bytes, and the number of its bytes that have arrived."""

    def get_buffer(self) -> memoryview:
        """Return the buffer for the next bytes; not empty if `next_frame` has returned None before."""
        frame = self._frame
        return self._scratch[self._end :] if frame is None else frame[self._filled :]

    def received(self, count: int) -> None:
        """Process `count` bytes that were written to the beginning of the buffer from `get_buffer`.

        Raises:
            ConnectionStateError: the buffer is smaller than `count`.
        """
        frame = self._frame
        if frame is None:
            self._end += count
            if not 0 <= count <= self._end <= SCRATCH_BYTES:
                self._refuse_count(count)
        else:
            self._filled += count
            if not 0 <= count <= self._filled <= len(frame):
                self._refuse_count(count)

    def next_frame(self) -> memoryview | None:
        """Return the next whole frame, without its size, or None until more bytes arrive.

        Raises:
            FrameSizeError: the size of a frame is outside the limits. Every later call raises it again.
        """
        frame = self._frame
        if frame is not None:
            if self._filled < len(frame):
                return None
            if self._filled < self._size:
                self._grow(frame)
                return None
            self._frame = None
            return frame
        scratch, position, end = self._scratch, self._position, self._end
        if end - position >= 4:
            start = position + 4
            size = int.from_bytes(scratch[position:start], "big", signed=True)
            if not self.size_min <= size <= self._size_max:
                check_size(size, self.size_min, self._size_max)
            stop = start + size
            if stop <= end:
                if stop == end:
                    self._position = self._end = 0
                else:
                    self._position = stop
                return memoryview(bytes(scratch[start:stop]))
            if 4 + size > SCRATCH_BYTES:
                self._begin(size, scratch[start:end])
                return None
        if position:
            self._end = end = end - position
            self._position = 0
            if end:
                scratch[:end] = bytes(scratch[position : position + end])
        return None

    @property
    def pending_bytes(self) -> int:
        """The number of bytes of an incomplete frame that have arrived, including the bytes of its size."""
        return self._end - self._position if self._frame is None else 4 + self._filled

    @property
    def is_receiving_long_frame(self) -> bool:
        """True if a frame that has a buffer of its own has arrived in part."""
        return self._frame is not None

    def _begin(self, size: int, arrived: memoryview) -> None:
        count = len(arrived)
        first = min(size, max(GROWTH_START_BYTES, 2 * count)) if self._grows else size
        frame = self.take(first)
        frame[:count] = arrived
        self._frame, self._size, self._filled = frame, size, count
        self._position = self._end = 0

    def _grow(self, older: memoryview) -> None:
        frame = self.take(min(self._size, 2 * len(older)))
        frame[: self._filled] = older
        self._frame = frame

    def _refuse_count(self, count: int) -> NoReturn:
        raise ConnectionStateError(f"{count} bytes received, which the lent buffer cannot hold")
