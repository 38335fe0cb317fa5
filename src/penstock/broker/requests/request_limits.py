"""Limits on large requests, checked on their bytes before any object is made of them.

Records stay bytes in any number; topics and partitions become objects fifty times their size.
A Produce request of maximum size that consists of empty topics would become gigabytes, and other
such requests would hold up all clients for seconds. Counting stops at the limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.protocol.compiler.runtime import check_tags, read_uvarint
from penstock.protocol.compiler.wire_type import StepKind
from penstock.protocol.since import (
    PRODUCE_FLEXIBLE_SINCE,
    PRODUCE_TOPIC_IDS_SINCE,
    PRODUCE_TRANSACTIONAL_ID_SINCE,
)

if TYPE_CHECKING:
    from penstock.protocol.compiler.wire_type import Length, Step, StructLayout


_ACKS_AND_TIMEOUT_BYTES = 6
_UUID_BYTES = 16
_INDEX_BYTES = 4


def is_mostly_records(frame: memoryview, position: int, version: int, limit_bytes: int) -> bool:
    """Return True if a Produce request's body has at most `limit_bytes` besides its records.

    The body begins at `position`. Also returns True for a malformed body, which the decoder refuses.
    """
    try:
        return _beside_records(frame, position, version, limit_bytes) <= limit_bytes
    except IndexError:
        return True


def _beside_records(frame: memoryview, start: int, version: int, limit_bytes: int) -> int:
    """Return the number of bytes of a Produce body besides its records; stop counting above `limit_bytes`."""
    flexible = version >= PRODUCE_FLEXIBLE_SINCE

    def length_at(position: int, width: int) -> tuple[int, int]:
        """Return a length or count and the position after it; null counts as 0."""
        if flexible:
            length, position = read_uvarint(frame, position)
            return max(length - 1, 0), position
        if position + width > len(frame):
            raise IndexError
        length = int.from_bytes(frame[position : position + width], "big", signed=True)
        return max(length, 0), position + width

    def behind_tags(position: int) -> int:
        if not flexible:
            return position
        count, position = read_uvarint(frame, position)
        check_tags(count, len(frame) - position)
        for _ in range(count):
            _, position = read_uvarint(frame, position)
            size, position = read_uvarint(frame, position)
            position += size
        return position

    position, records = start, 0
    if version >= PRODUCE_TRANSACTIONAL_ID_SINCE:
        length, position = length_at(position, 2)
        position += length
    topics, position = length_at(position + _ACKS_AND_TIMEOUT_BYTES, 4)
    for _ in range(topics):
        if version >= PRODUCE_TOPIC_IDS_SINCE:
            position += _UUID_BYTES
        else:
            length, position = length_at(position, 2)
            position += length
        partitions, position = length_at(position, 4)
        for _ in range(partitions):
            length, position = length_at(position + _INDEX_BYTES, 4)
            records += length
            position = behind_tags(position + length)
            if position - start - records > limit_bytes:
                return position - start - records
        position = behind_tags(position)
        if position - start - records > limit_bytes:
            return position - start - records
    return len(frame) - start - records


def has_more_entries(layout: StructLayout, frame: memoryview, position: int, limit: int) -> bool:
    """Return True if all arrays of the message at `position` together have more than `limit` elements.

    Tagged fields count as elements, too. Returns False for a malformed message, which the decoder refuses.
    """
    steps = _steps.get(layout)
    if steps is None:
        steps = _steps[layout] = layout.steps()
    try:
        _Counter(frame, limit).walk(steps, position)
    except _TooMany:
        return True
    except (IndexError, ValueError):
        return False
    return False


class _TooMany(Exception):
    """Raised by `_Counter` when the limit is exceeded."""


_steps: dict[StructLayout, list[Step]] = {}
"""A dict from message layout to the steps for skipping such a message. They are computed only for layouts
of large requests."""


class _Counter:
    """Skips the values in a frame and counts array elements. Raises IndexError at the end of the frame."""

    def __init__(self, frame: memoryview, limit: int) -> None:
        self._frame = frame
        self._left = limit

    def walk(self, steps: Sequence[Step], position: int) -> int:
        """Skip the values that `steps` describe; return the position after them."""
        frame = self._frame
        for do, size, length, inner, skip in steps:
            if do is StepKind.BYTES:
                position += size
            elif do is StepKind.TAGS:
                position = self._behind_tags(position) if frame[position] else position + 1
            elif do is StepKind.VARINT:
                _, position = read_uvarint(frame, position)
            elif do is StepKind.NULLABLE:
                is_there = frame[position] < 128
                position = self.walk(inner, position + 1) if is_there else position + 1
            elif skip is not None:
                position = skip(frame, position)
            else:
                assert length is not None
                count, position = self._length(length, position)
                if do is StepKind.TEXT:
                    position += count
                    continue
                self._count(count)
                if do is StepKind.FIXED_ARRAY:
                    position += count * size
                    continue
                for _ in range(count):
                    position = self.walk(inner, position)
        return position

    def _behind_tags(self, position: int) -> int:
        tags, position = read_uvarint(self._frame, position)
        self._count(tags)
        for _ in range(tags):
            _, position = read_uvarint(self._frame, position)
            size, position = read_uvarint(self._frame, position)
            position += size
        return position

    def _count(self, entries: int) -> None:
        self._left -= entries
        if self._left < 0:
            raise _TooMany

    def _length(self, length: Length, position: int) -> tuple[int, int]:
        """Return a length or count, 0 for null, and the position after it."""
        frame = self._frame
        if length.bias:
            sent = frame[position]
            if sent > 127:
                sent, position = read_uvarint(frame, position)
                return max(sent - 1, 0), position
            return max(sent - 1, 0), position + 1
        end = position + length.kind.size
        if end > len(frame):
            raise IndexError
        return max(int.from_bytes(frame[position:end], "big", signed=True), 0), end
