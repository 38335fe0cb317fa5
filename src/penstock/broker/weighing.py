"""What a large request would become, found without making an object of any of it.

Records stay bytes, whatever their number; topics and partitions become objects fifty times their size.
A Produce of the greatest size that names nothing but empty topics would become gigabytes, and other
requests hold up everybody else for seconds. Counting stops at the limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.protocol.runtime import check_tags, read_uvarint
from penstock.protocol.structs import NullableStructure, Structure
from penstock.protocol.wire import Array, Blob, Length, Text

if TYPE_CHECKING:
    from penstock.protocol.structs import StructLayout

FLEXIBLE_SINCE = 9
TRANSACTIONAL_SINCE = 3
TOPIC_IDS_SINCE = 13

_ACKS_AND_TIMEOUT_BYTES = 6
_UUID_BYTES = 16
_INDEX_BYTES = 4


def is_mostly_records(frame: memoryview, position: int, version: int, limit_bytes: int) -> bool:
    """Whether all but `limit_bytes` of a Produce request's body, from `position` on, are records.

    What cannot be read is left for the decoder to complain of.
    """
    try:
        return _beside_records(frame, position, version, limit_bytes) <= limit_bytes
    except IndexError:
        return True


def _beside_records(frame: memoryview, start: int, version: int, limit_bytes: int) -> int:
    """Bytes of the body that are no records; counting ends where there are more than `limit_bytes`."""
    flexible = version >= FLEXIBLE_SINCE

    def length_at(position: int, width: int) -> tuple[int, int]:
        """A length or count, and the position behind it; nothing has length 0."""
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
    if version >= TRANSACTIONAL_SINCE:
        length, position = length_at(position, 2)
        position += length
    topics, position = length_at(position + _ACKS_AND_TIMEOUT_BYTES, 4)
    for _ in range(topics):
        if version >= TOPIC_IDS_SINCE:
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
    """Whether the arrays of the message at `position` have more than `limit` elements, all together.

    Tagged fields that the message does not know count as entries, too. What cannot be read is left for the
    decoder to complain of.
    """
    try:
        _Counter(frame, limit).skip_struct(layout, position)
    except _TooMany:
        return True
    except (IndexError, ValueError):
        return False
    return False


class _TooMany(Exception):
    """Counting has come to the limit."""


class _Counter:
    """Walks over the values of a frame. What is beyond its end raises IndexError."""

    def __init__(self, frame: memoryview, limit: int) -> None:
        self._frame = frame
        self._left = limit

    def skip_struct(self, layout: StructLayout, position: int) -> int:
        """Return the position behind a struct."""
        for field in layout.fields:
            position = self._skip(field.wire, position)
        if layout.flexible:
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
        """A length or count, with nothing and null as 0, and the position behind it."""
        if length.bias:
            sent, position = read_uvarint(self._frame, position)
            return max(sent - 1, 0), position
        end = position + length.kind.size
        if end > len(self._frame):
            raise IndexError
        return max(int.from_bytes(self._frame[position:end], "big", signed=True), 0), end

    def _skip(self, wire: Any, position: int) -> int:
        if isinstance(wire, Array):
            return self._skip_array(wire, position)
        if isinstance(wire, (Text, Blob)):
            size, position = self._length(wire.length, position)
            return position + size
        if isinstance(wire, NullableStructure):
            # The mark is one byte, negative for null.
            is_there = self._frame[position] < 128
            return self.skip_struct(wire.layout, position + 1) if is_there else position + 1
        if isinstance(wire, Structure):
            return self.skip_struct(wire.layout, position)
        return self._skip_number(wire, position)

    def _skip_number(self, wire: Any, position: int) -> int:
        if wire.kind.is_varint:
            while self._frame[position] & 0x80:
                position += 1
            return position + 1
        return position + int(wire.kind.size)

    def _skip_array(self, wire: Array, position: int) -> int:
        count, position = self._length(wire.length, position)
        self._count(count)
        element = wire.element
        kind = getattr(element, "kind", None)
        if kind is not None and not kind.is_varint and not isinstance(element, Structure):
            return position + count * int(kind.size)
        for _ in range(count):
            position = self._skip(element, position)
        return position
