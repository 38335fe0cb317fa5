"""Memory for requests that arrive in several pieces, shared by all connections.

A connection borrows a buffer while a frame is arriving and returns it when the request is answered, so a
thousand idle connections hold no buffers. The size of the buffer grows with the bytes that have arrived, so
that a large length field alone uses no memory.
"""

from __future__ import annotations

KEPT_BYTES_MAX = 16 << 20
"""The maximum total size in bytes of the free buffers in the pool: enough for a few producers with
requests of 1 MiB.
"""


class FrameBuffers:
    """A pool of buffers. `limit_bytes` bounds the bytes lent at a time; -1 means no bound."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._free: list[bytearray] = []
        self._free_bytes = 0
        self.lent_bytes = 0

    def is_short_of(self, size: int) -> bool:
        """Return True if lending `size` bytes more would exceed the limit."""
        return 0 <= self._limit_bytes < self.lent_bytes + size

    def borrow(self, size: int) -> bytearray:
        """Return a buffer of at least `size` bytes from the pool. It may hold bytes of an earlier frame."""
        best = None
        for index, buffer in enumerate(self._free):
            if len(buffer) >= size and (best is None or len(buffer) < len(self._free[best])):
                best = index
        if best is None:
            found = bytearray(size)
        else:
            found = self._free.pop(best)
            self._free_bytes -= len(found)
        self.lent_bytes += len(found)
        return found

    def give_back(self, buffer: bytearray) -> None:
        """Put a borrowed buffer back into the pool."""
        self.lent_bytes -= len(buffer)
        if self._free_bytes + len(buffer) <= KEPT_BYTES_MAX:
            self._free.append(buffer)
            self._free_bytes += len(buffer)
