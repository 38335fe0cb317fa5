"""What compiled codecs call: the rare and the long, kept out of their straight lines.

Nothing here knows a message. Reading functions take the bytes and a position and return the value
and the next position; running off the end shows as `IndexError` or `struct.error`, which the
compiled code turns into `DecodeError`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from penstock.errors import DecodeError, EncodeError

Data: TypeAlias = "bytes | memoryview"
HeadReader: TypeAlias = "Callable[[Data, int], tuple[Any, int]]"
HeadWriter: TypeAlias = "Callable[[Any], bytes]"

COUNT_CACHED_MAX = 128
"""Arrays up to this length keep a struct of their own; longer ones make one each time."""


def read_uvarint(data: Data, position: int) -> tuple[int, int]:
    """An unsigned varint of at most 32 bits."""
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >> 32:
                raise DecodeError(f"varint of more than 32 bits at byte {position - 1}")
            return value, position
        shift += 7
        if shift > 28:
            raise DecodeError(f"varint of more than 5 bytes at byte {position - 1}")


def write_uvarint(value: int) -> bytes:
    """An unsigned varint. `value` must not be negative."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def fixed_reader(code: str) -> HeadReader:
    """Reads one value of a struct format."""
    fixed = struct.Struct(">" + code)

    def read(data: Data, position: int) -> tuple[Any, int]:
        return fixed.unpack_from(data, position)[0], position + fixed.size

    return read


def read_heads(data: Data, position: int, readers: Sequence[HeadReader]) -> tuple[Any, ...]:
    """A run of values one by one, because some varint in it is long. The next position comes last."""
    values = []
    for read in readers:
        value, position = read(data, position)
        values.append(value)
    return (*values, position)


def write_heads(writers: Sequence[HeadWriter], *values: Any) -> bytes:
    """The counterpart of `read_heads`."""
    return b"".join([write(value) for write, value in zip(writers, values, strict=True)])


class ArrayUnpackers(dict[int, Any]):
    """Functions that read an array of fixed-size elements and the values after it, by its count.

    The count is the one on the wire: compact arrays send theirs plus one, which is the `bias`.
    """

    def __init__(self, code: str, after: str, bias: int) -> None:
        super().__init__()
        self._code, self._after, self._bias = code, after, bias

    def __missing__(self, sent: int) -> Any:
        count = sent - self._bias
        if count < 0:
            raise DecodeError(f"array of {count} elements" if sent + 1 - self._bias else "null array")
        unpack = struct.Struct(f">{count}{self._code}{self._after}").unpack_from
        if count <= COUNT_CACHED_MAX:
            self[sent] = unpack
        return unpack


class ArrayPackers(dict[int, Any]):
    """The counterpart of `ArrayUnpackers`. A null array has no elements."""

    def __init__(self, code: str, after: str, bias: int) -> None:
        super().__init__()
        self._code, self._after, self._bias = code, after, bias

    def __missing__(self, sent: int) -> Any:
        count = max(sent - self._bias, 0)
        pack = struct.Struct(f">{count}{self._code}{self._after}").pack
        if count <= COUNT_CACHED_MAX:
            self[sent] = pack
        return pack


def read_unknown_tags(data: Data, position: int, size: int, count: int) -> tuple[dict[int, bytes], int]:
    """A tagged-field section of which nothing is known, after its count."""
    tags: dict[int, bytes] = {}
    last = -1
    for _ in range(count):
        tag, position, end = read_tag(data, position, size, last)
        tags[tag] = bytes(data[position:end])
        last, position = tag, end
    return tags, position


def read_tag(data: Data, position: int, size: int, last: int) -> tuple[int, int, int]:
    """The number of a tagged field, and where its payload begins and ends."""
    tag, position = read_uvarint(data, position)
    length, position = read_uvarint(data, position)
    if tag <= last:
        raise DecodeError(f"tagged field {tag} after {last}: tags must increase")
    if position + length > size:
        raise DecodeError(f"tagged field {tag} of {length} bytes runs past the end")
    return tag, position, position + length


def write_tag_section(known: dict[int, bytes], unknown: dict[int, bytes] | None) -> bytes:
    """A whole tagged-field section: the count, then the fields by increasing tag."""
    if unknown:
        if not known.keys().isdisjoint(unknown):
            raise EncodeError(f"unknown_tags holds tags that are known: {sorted(known.keys() & unknown)}")
        known = {**known, **unknown}
    out = [write_uvarint(len(known))]
    for tag in sorted(known):
        payload = known[tag]
        out += (write_uvarint(tag), write_uvarint(len(payload)), payload)
    return b"".join(out)


def records_size(records: Any) -> int:
    """The bytes of a records value: one piece or a list of them."""
    return sum(map(len, records)) if isinstance(records, (list, tuple)) else len(records)


def add_records(parts: list[Any], records: Any) -> None:
    """Append a records value, piece by piece."""
    if isinstance(records, (list, tuple)):
        parts.extend(records)
    elif records is not None:
        parts.append(records)
