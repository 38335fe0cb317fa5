"""Memory for responses from a socket, which is reused once no view of it exists.

New pages take as long to allocate as to read into, because the kernel maps them and fills them with zeros.
This module does not depend on protocols. The memory belongs to one thread or event loop at a time.
"""

from __future__ import annotations

from collections.abc import Callable

KEPT_BUFFERS_MAX = 4
KEPT_BYTES_MAX = 16 << 20
"""The size in bytes of the largest buffer that is kept for reuse."""

LEFT_BYTES_MAX = 32 << 20
LEFT_S = 5.0
"""The time in seconds for which `LeftBuffers` keeps buffers."""


class ReusedMemory:
    """Provides buffers, and keeps some for reuse. Buffers of fewer than `least_bytes` are not kept.

    To find out whether a buffer is in use, it is resized: a bytearray refuses that while a memoryview of it
    exists. Buffers are a little larger than requested, so that they also fit slightly larger later requests.
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
        buffer = bytearray(_rounded(size))
        self._keep(buffer)
        return memoryview(buffer)[:size]

    def take_over(self, left: LeftBuffers) -> None:
        """Take the buffers that other instances have put into `left`, and keep them for reuse."""
        for buffer in left.take():
            self._keep(buffer)

    def leave(self, left: LeftBuffers, call_later: Callable[[float, Callable[[], None]], object]) -> None:
        """Move the kept buffers to `left`; after `LEFT_S` seconds, `call_later` drops those still there."""
        kept, self._kept = self._kept, []
        if kept:
            call_later(LEFT_S, left.put(kept).clear)

    def _keep(self, buffer: bytearray) -> None:
        """Keep a buffer for reuse. If `KEPT_BUFFERS_MAX` are kept already, drop the smallest of them."""
        if len(self._kept) >= KEPT_BUFFERS_MAX:
            sizes = [len(each) for each in self._kept]
            del self._kept[sizes.index(min(sizes))]
        self._kept.append(buffer)


class LeftBuffers:
    """Buffers that one `ReusedMemory` has left, and that another one may take over.

    Views of these buffers may still exist: `ReusedMemory.take` checks that before each use.
    """

    def __init__(self) -> None:
        self._rounds: list[list[bytearray]] = []

    def put(self, buffers: list[bytearray]) -> list[bytearray]:
        """Add as many of `buffers` as the limit `LEFT_BYTES_MAX` for all buffers allows.

        Returns the list of the added buffers. Clearing that list drops those that were not taken until then.
        """
        self._rounds = [one for one in self._rounds if one]
        room = LEFT_BYTES_MAX - sum(len(each) for one in self._rounds for each in one)
        accepted = []
        for buffer in buffers:
            if len(buffer) <= room:
                room -= len(buffer)
                accepted.append(buffer)
        self._rounds.append(accepted)
        return accepted

    def take(self) -> list[bytearray]:
        """Remove and return all buffers."""
        taken = [buffer for one in self._rounds for buffer in one]
        for one in self._rounds:
            one.clear()
        return taken


def _rounded(size: int) -> int:
    """Return the least number of the series 2, 3, 4, 6, 8, 12 ... that is at least `size`."""
    power = 1 << max(size - 1, 1).bit_length()
    return power * 3 // 4 if size <= power * 3 // 4 else power


def _is_unseen(buffer: bytearray) -> bool:
    try:
        buffer.append(buffer.pop())
    except BufferError:
        return False
    return True
