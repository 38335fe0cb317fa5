"""Memory for answers from a socket, used again once no view of it exists.

Fresh pages cost as much as reading into them: the kernel maps them, and fills them with zeros.
Independent of protocols; belongs to one thread or event loop at a time.
"""

from __future__ import annotations

KEPT_BUFFERS_MAX = 4
KEPT_BYTES_MAX = 16 << 20
"""Larger buffers are not kept."""


class ReusedMemory:
    """Hands out buffers, and keeps some. What has fewer than `least_bytes` is not worth keeping.

    Whether a buffer is in use is found by resizing it: a bytearray refuses that while a memoryview of it
    exists.
    """

    def __init__(self, least_bytes: int = 1) -> None:
        self._least_bytes = least_bytes
        self._kept: list[bytearray] = []

    def take(self, size: int) -> memoryview:
        """Return a writable view of `size` bytes with arbitrary contents."""
        if not self._least_bytes <= size <= KEPT_BYTES_MAX:
            return memoryview(bytearray(size))
        for buffer in self._kept:
            if len(buffer) >= size and _is_unseen(buffer):
                return memoryview(buffer)[:size]
        buffer = bytearray(size)
        self._keep(buffer)
        return memoryview(buffer)

    def _keep(self, buffer: bytearray) -> None:
        """Keep it, in place of the smallest if there are enough."""
        if len(self._kept) >= KEPT_BUFFERS_MAX:
            sizes = [len(each) for each in self._kept]
            del self._kept[sizes.index(min(sizes))]
        self._kept.append(buffer)


def _is_unseen(buffer: bytearray) -> bool:
    try:
        buffer.append(buffer.pop())
    except BufferError:
        return False
    return True
