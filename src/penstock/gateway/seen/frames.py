"""Divide the bytes of a connection into frames while they are forwarded, and store each frame's beginning."""

from __future__ import annotations

from collections.abc import Iterator

_SIZE_BYTES = 4


class Frames:
    """Divides a stream of bytes into Kafka frames, and stores the first `kept` bytes of each frame."""

    def __init__(self, kept: int) -> None:
        self._kept = kept
        self._head = bytearray()
        self._size = -1
        """The size of the frame that is arriving, without its size field; -1 before the size field has
        arrived."""
        self._left = 0

    def cut(self, data: memoryview) -> Iterator[tuple[bytes, int]]:
        """Yield (first bytes, size in bytes) for each frame that ends in `data`, both without the size field.

        `data` must stay valid during the iteration. After a negative size field, no further frame is found.
        """
        position, end = 0, len(data)
        while position < end:
            if self._size < 0:
                stop = min(end, position + _SIZE_BYTES - len(self._head))
                self._head += data[position:stop]
                position = stop
                if len(self._head) < _SIZE_BYTES:
                    return
                self._size = self._left = int.from_bytes(self._head, "big", signed=True)
                self._head.clear()
                if self._size < 0:
                    return
            stop = min(end, position + self._left)
            room = self._kept - len(self._head)
            if room > 0:
                self._head += data[position : min(stop, position + room)]
            self._left -= stop - position
            position = stop
            if not self._left:
                head, size = bytes(self._head), self._size
                self._head.clear()
                self._size = -1
                yield head, size
