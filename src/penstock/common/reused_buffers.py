"""Memory for responses from a socket, which is reused once no view of it exists.

New pages cost as much as reading into them, because the kernel maps them and fills them with zeros. This
module does not depend on protocols. The memory belongs to one thread or event loop at a time.
"""

from __future__ import annotations

from collections.abc import Callable

KEPT_BUFFERS_MAX = 4
KEPT_BYTES_MAX = 16 << 20
"""The largest buffer that is kept."""

LEFT_BYTES_MAX = 32 << 20
LEFT_S = 5.0
"""How many bytes of buffers, and for how many seconds, wait for another `ReusedMemory` to take them over."""


class ReusedMemory:
    """Returns buffers, and keeps some for reuse. Buffers of fewer than `least_bytes` are not kept.

    To find out whether a buffer is in use, it is resized: a bytearray refuses that while a memoryview of it
    exists. Buffers have room for a little more than was asked for, so that they fit the next ones, too.
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
        """Keep the buffers that others have left."""
        for buffer in left.take():
            self._keep(buffer)

    def leave(self, left: LeftBuffers, call_later: Callable[[float, Callable[[], None]], object]) -> None:
        """Leave the kept buffers to others for `LEFT_S` seconds, by the event loop's `call_later`."""
        kept, self._kept = self._kept, []
        if kept:
            call_later(LEFT_S, left.put(kept).clear)

    def _keep(self, buffer: bytearray) -> None:
        """Keep a buffer for reuse; if there are enough, drop the smallest one."""
        if len(self._kept) >= KEPT_BUFFERS_MAX:
            sizes = [len(each) for each in self._kept]
            del self._kept[sizes.index(min(sizes))]
        self._kept.append(buffer)


class LeftBuffers:
    """The buffers of memory that is no longer used, until another `ReusedMemory` takes them over.

    Views of them may still exist: `ReusedMemory.take` checks that before each use.
    """

    def __init__(self) -> None:
        self._rounds: list[list[bytearray]] = []

    def put(self, buffers: list[bytearray]) -> list[bytearray]:
        """Take as many of the buffers as fit into `LEFT_BYTES_MAX` with those that are here.

        Returns a list of them. Clearing the list drops those that are still here.
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
        """Return all buffers; none of them is here any longer."""
        taken = [buffer for one in self._rounds for buffer in one]
        for one in self._rounds:
            one.clear()
        return taken


def _rounded(size: int) -> int:
    """Return the least of 2, 3, 4, 6, 8, 12 ... that is not below `size`."""
    power = 1 << max(size - 1, 1).bit_length()
    return power * 3 // 4 if size <= power * 3 // 4 else power


def _is_unseen(buffer: bytearray) -> bool:
    try:
        buffer.append(buffer.pop())
    except BufferError:
        return False
    return True
