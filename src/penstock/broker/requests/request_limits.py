"""Limits on large requests, checked on their bytes before any object is made of them.

Records stay bytes in any number; topics and partitions become objects fifty times their size.
A Produce of the greatest size that names nothing but empty topics would become gigabytes, and other
requests hold up all other clients for seconds. Counting stops at the limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.protocol.compiler.runtime import check_tags, read_uvarint
from penstock.protocol.compiler.struct_types import NullableStructure, Structure
from penstock.protocol.compiler.wire_type import Length
from penstock.protocol.compiler.wire_types import Array, Blob, Text

if TYPE_CHECKING:
    from penstock.protocol.compiler.wire_type import StructLayout

FLEXIBLE_SINCE = 9
TRANSACTIONAL_SINCE = 3
TOPIC_IDS_SINCE = 13

_ACKS_AND_TIMEOUT_BYTES = 6
_UUID_BYTES = 16
_INDEX_BYTES = 4


def is_mostly_records(frame: memoryview, position: int, version: int, limit_bytes: int) -> bool:
    """Whether all but `limit_bytes` of a Produce request's body, from `position` on, are records.

    True for what cannot be read: the decoder refuses it.
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

    Tagged fields count as entries, too. What cannot be read is left for the decoder to complain of.
    """
    steps = _steps.get(layout)
    if steps is None:
        steps = _steps[layout] = _plan(layout)
    try:
        _Counter(frame, limit).walk(steps, position)
    except _TooMany:
        return True
    except (IndexError, ValueError):
        return False
    return False


class _TooMany(Exception):
    """The limit is exceeded."""


class _Do(Enum):
    """What there is to step over in a message."""

    BYTES = auto()
    """So many bytes."""
    VARINT = auto()
    TEXT = auto()
    """A length, and as many bytes."""
    FIXED_ARRAY = auto()
    """A count, and as many elements of the same size."""
    ARRAY = auto()
    """A count, and as many elements, each stepped over by itself."""
    NULLABLE = auto()
    """A mark of one byte, and a struct if it is not negative."""
    TAGS = auto()


class _Step(NamedTuple):
    do: _Do
    size: int = 0
    length: Length | None = None
    inner: Sequence[_Step] = ()


_steps: dict[StructLayout, list[_Step]] = {}
"""How to step over messages that large requests were made of; there are as many as codecs."""


def _plan(layout: StructLayout) -> list[_Step]:
    """The steps over a struct, those over bytes of a fixed number put together."""
    steps: list[_Step] = []
    for field in layout.fields:
        for step in _plan_value(field.wire):
            if steps and step.do is steps[-1].do is _Do.BYTES:
                steps[-1] = _Step(_Do.BYTES, steps[-1].size + step.size)
            else:
                steps.append(step)
    if layout.flexible:
        steps.append(_Step(_Do.TAGS))
    return steps


def _plan_value(wire: Any) -> list[_Step]:
    if isinstance(wire, Array):
        inner = _plan_value(wire.element)
        if not inner or (len(inner) == 1 and inner[0].do is _Do.BYTES):
            return [_Step(_Do.FIXED_ARRAY, inner[0].size if inner else 0, wire.length)]
        return [_Step(_Do.ARRAY, 0, wire.length, inner)]
    if isinstance(wire, (Text, Blob)):
        return [_Step(_Do.TEXT, 0, wire.length)]
    if isinstance(wire, NullableStructure):
        return [_Step(_Do.NULLABLE, 0, None, _plan(wire.layout))]
    if isinstance(wire, Structure):
        return _plan(wire.layout)
    if wire.kind.is_varint:
        return [_Step(_Do.VARINT)]
    return [_Step(_Do.BYTES, wire.kind.size)]


class _Counter:
    """Steps over the values of a frame. What is beyond its end raises IndexError."""

    def __init__(self, frame: memoryview, limit: int) -> None:
        self._frame = frame
        self._left = limit

    def walk(self, steps: Sequence[_Step], position: int) -> int:
        """Return the position behind these steps."""
        frame = self._frame
        for do, size, length, inner in steps:
            if do is _Do.BYTES:
                position += size
            elif do is _Do.TAGS:
                position = self._behind_tags(position) if frame[position] else position + 1
            elif do is _Do.VARINT:
                _, position = read_uvarint(frame, position)
            elif do is _Do.NULLABLE:
                is_there = frame[position] < 128
                position = self.walk(inner, position + 1) if is_there else position + 1
            else:
                assert length is not None
                count, position = self._length(length, position)
                if do is _Do.TEXT:
                    position += count
                    continue
                self._count(count)
                if do is _Do.FIXED_ARRAY:
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
        """A length or count, with nothing and null as 0, and the position behind it."""
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
