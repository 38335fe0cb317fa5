"""Read the undamaged batches of a segment, and skip damaged parts between them.

Used for the broker's internal topics, whose state is rebuilt at a start: one damaged batch must not hide all
others. A batch is undamaged if its length fits into the segment and its checksum fits its bytes. After
damage, the module searches byte by byte for the next batch of magic 2, because the damaged batch may have a
wrong length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from struct import Struct

from penstock.log.contract import Segment
from penstock.log.segments.segment import FileSegment
from penstock.log.walk import BatchEntry, has_valid_checksum
from penstock.records.format.batch_header import HEADER_BYTES, LENGTH_EXTRA_BYTES, LENGTH_MIN, MAGIC_POSITION

CHUNK_BYTES = 1 << 20

# base offset (skipped), length, leader epoch (skipped), magic, crc (skipped), attributes, last offset delta
_HEAD = Struct(">8xi4xb4xhi")
_ATTRIBUTES_KNOWN = 0x7F

Damaged = Callable[[int, int], None]


def sound_batches(segment: Segment, damaged: Damaged) -> Iterator[tuple[memoryview, int]]:
    """Yield (bytes, magic) of every undamaged batch; call `damaged` with (position, size) of each gap.

    Raises:
        StorageError: the segment cannot be read.
    """
    window = _Window(segment)
    position, good_to = 0, 0
    while position < segment.size:
        size, magic = _sound_at(window, position)
        if not size:
            position = _next_candidate(window, position + 1)
            continue
        if position > good_to:
            damaged(good_to, position - good_to)
        yield window.get(position, size)[:size], magic
        position = good_to = position + size
    if segment.size > good_to:
        damaged(good_to, segment.size - good_to)


class _Window:
    """A part of a segment that is read into memory; it moves to the positions that are requested."""

    def __init__(self, segment: Segment) -> None:
        self.segment = segment
        self.size = segment.size
        self._data = memoryview(b"")
        self._start = 0

    def get(self, position: int, size: int) -> memoryview:
        """Return the bytes from `position` on: at least `size`, or up to the end of the segment."""
        at = position - self._start
        if not 0 <= at <= len(self._data) - min(size, self.size - position):
            self._data = memoryview(self.segment.load(position, max(size, CHUNK_BYTES)))
            self._start, at = position, 0
        return self._data[at:]


def _sound_at(window: _Window, position: int) -> tuple[int, int]:
    """Return the size and magic of the undamaged batch at `position`, or a size of 0 if there is none."""
    head = window.get(position, HEADER_BYTES)
    size, magic = _claimed(bytes(head[: _HEAD.size]), 0, window.size - position)
    if not size:
        return 0, 0
    batch = window.get(position, size)
    entry = BatchEntry(position, size, 0, 0, 0, 0, 0, magic)
    return (size, magic) if len(batch) >= size and has_valid_checksum(batch, 0, entry) else (0, 0)


def _claimed(data: bytes, at: int, room: int) -> tuple[int, int]:
    """Return the size and magic according to the batch header at `at`; size 0 if the header is invalid."""
    if room < LENGTH_EXTRA_BYTES + LENGTH_MIN[0]:
        return 0, 0
    head = data[at : at + _HEAD.size].ljust(_HEAD.size, b"\0")
    length, magic, attributes, delta = _HEAD.unpack(head)
    size = length + LENGTH_EXTRA_BYTES
    if not 0 <= magic <= 2 or length < LENGTH_MIN[magic] or size > room:
        return 0, 0
    if magic == 2 and (delta < 0 or attributes & ~_ATTRIBUTES_KNOWN):
        return 0, 0
    return size, magic


def _next_candidate(window: _Window, position: int) -> int:
    """Return the next position at which a batch of magic 2 may begin, or the segment's end."""
    if not isinstance(window.segment, FileSegment):
        return window.size  # batches in memory have no damage between them
    while position + HEADER_BYTES <= window.size:
        data = bytes(window.get(position, min(CHUNK_BYTES, window.size - position)))
        last = len(data) - _HEAD.size
        found = data.find(b"\x02", MAGIC_POSITION)
        while 0 <= found - MAGIC_POSITION <= last:
            at = found - MAGIC_POSITION
            if _claimed(data, at, window.size - position - at)[0]:
                return position + at
            found = data.find(b"\x02", found + 1)
        position += max(last + 1, 1)
    return window.size
