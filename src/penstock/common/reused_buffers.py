"""Memory for responses from a socket, which is reused once no view of it exists.

New pages cost as much as reading into them, because the kernel maps them and fills them with zeros. This
module does not depend on protocols. The memory belongs to one thread or event loop at a time.
"""

from __future__ import annotations

KEPT_BUFFERS_MAX = 4
KEPT_BYTES_MAX = 16 << 20
"""The largest buffer that is kept."""


class ReusedMemory:
    """Returns buffers, and keeps some for reuse. Buffers of fewer than `least_bytes` are not kept.

    To find out whether a buffer is in use, it is resized: a bytearray refuses that while a memoryview of it
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
        """Keep a buffer for reuse; if there are enough, drop the smallest one."""
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
