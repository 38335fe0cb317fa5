"""Functions that compiled codecs call for rare and long cases, which their generated code leaves out.

Nothing here depends on a message. Reading functions take the bytes and a position and return the value
and the next position; past the end they raise `IndexError` or `struct.error`, which the
compiled code turns into `DecodeError`.
"""

from __future__ import annotations

import codecs
import functools
import gc
import itertools
import re
import struct
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from penstock.errors import DecodeError, EncodeError

Data: TypeAlias = "bytes | memoryview"
HeadReader: TypeAlias = "Callable[[Data, int], tuple[Any, int]]"
HeadWriter: TypeAlias = "Callable[[Any], bytes]"

MALFORMED = "penstock-malformed"
"""The name of the error handler with which `bytes.decode` reads strings that are not UTF-8."""

MALFORMED_BYTES_MAX = 32_767
"""The maximum size in bytes of a malformed string after replacement characters are inserted. A longer
string could not be sent back in every response.
"""

_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")


def _replace_malformed(error: UnicodeError) -> tuple[str, int]:
    """Replace invalid UTF-8 by U+FFFD as Java does, so that strings are equal to Kafka's.

    A surrogate becomes one such character; Python would replace each of its bytes. The whole rest of the
    string is decoded at once: a call for each byte would take seconds for a string of megabytes.

    Raises:
        DecodeError: the result, up to three times as long, would be too long to send back.
    """
    assert isinstance(error, UnicodeDecodeError)
    rest = _SURROGATE.sub(b"\xff", error.object[error.start :]).decode("utf-8", "replace")
    size = error.start + len(rest.encode())
    if size > MALFORMED_BYTES_MAX:
        raise DecodeError(f"a string that is not UTF-8, of {size} bytes with replacement characters")
    return rest, len(error.object)


codecs.register_error(MALFORMED, _replace_malformed)

CHUNK_BYTES_MIN = 4096
"""The size in bytes above which a bytes-like value is not copied, but sent as a chunk of its own."""

COUNT_CACHED_MAX = 128
"""The largest array length for which a `struct.Struct` is cached; for longer arrays one is created at each
call.
"""

SHAPES_CACHED_MAX = 2000
"""The maximum number of cached `struct.Struct` objects per sequence of fields; each is for one combination
of array lengths.
"""


def varint_reader(bits: int, value_of: Callable[[int], int] | None = None) -> HeadReader:
    """Return a function that reads a varint of at most `bits` bits, and converts it with `value_of`."""
    last_shift = 7 * ((bits - 1) // 7)

    def read(data: Data, position: int) -> tuple[int, int]:
        value = shift = 0
        while True:
            byte = data[position]
            position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            if shift > last_shift:
                raise DecodeError(f"varint for {bits} bits goes on at byte {position}")
        if value >> bits:
            raise DecodeError(f"varint of more than {bits} bits before byte {position}")
        return (value if value_of is None else value_of(value)), position

    return read


def zigzag_value(bits: int) -> Callable[[int], int]:
    """Return a function that converts a zig-zag number to the signed number."""

    def value_of(sent: int) -> int:
        if sent >> bits:
            raise DecodeError(f"varint of more than {bits} bits")
        return (sent >> 1) ^ -(sent & 1)

    return value_of


def unsigned_value(bits: int) -> Callable[[int], int]:
    """Return a function that converts an unsigned number of `bits` bits to signed (two's complement)."""
    half, whole = 1 << (bits - 1), 1 << bits

    def value_of(sent: int) -> int:
        if sent < half:
            return sent
        if sent >= whole:
            raise DecodeError(f"varint of more than {bits} bits")
        return sent - whole

    return value_of


read_uvarint = varint_reader(32)
"""Read an unsigned varint of at most 32 bits, such as a length, count or tag."""


def write_uvarint(value: int) -> bytes:
    """Return a number as an unsigned varint. `value` must not be negative."""
    if value < 0x80:
        return ONE_BYTE[value]
    if value < 0x4000:
        return bytes((value & 0x7F | 0x80, value >> 7))
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


ONE_BYTE = tuple(bytes((value,)) for value in range(128))
"""The encoded varints of the numbers 0 to 127; each has one byte."""

ZIGZAG = tuple((value >> 1) ^ -(value & 1) for value in range(128))
"""The decoded number of each zig-zag varint of one byte: its index is the byte."""


def zigzag_writer(bits: int) -> HeadWriter:
    """Return a function that writes a number of `bits` bits as zig-zag: 0, -1, 1, -2 … become 0, 1, 2, 3 …"""

    def write(value: int) -> bytes:
        if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
            raise EncodeError(f"{value} does not fit {bits} bits")
        return write_uvarint((value << 1) ^ (value >> 63))

    return write


def unsigned_writer(bits: int) -> HeadWriter:
    """Return a function that writes a signed number as unsigned varint; -1 becomes the largest number."""

    def write(value: int) -> bytes:
        if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
            raise EncodeError(f"{value} does not fit {bits} bits")
        return write_uvarint(value & ((1 << bits) - 1))

    return write


def varints_reader(read_one: HeadReader, signed: bool) -> Callable[[Data, int, int], tuple[list[int], int]]:
    """Return a function of (data, position, count) that reads `count` varints."""

    def read(data: Data, position: int, count: int) -> tuple[list[int], int]:
        small = bytes(data[position : position + count])
        if small.isascii():
            # Each of these bytes is a whole number. Missing ones show when the end is checked.
            values = [ZIGZAG[byte] for byte in small] if signed else list(small)
            return values, position + count
        values = []
        for _ in range(count):
            value, position = read_one(data, position)
            values.append(value)
        return values, position

    return read


class VarintBytes(dict[int, bytes]):
    """A cache of varints by number: each number is encoded on first use.

    `plain` is a plain dictionary with the same items: a lookup there takes half the time, but raises KeyError
    for a number that is not cached.
    """

    def __init__(self, write: HeadWriter) -> None:
        super().__init__()
        self._write = write
        self.plain: dict[int, bytes] = {}

    def __missing__(self, value: int) -> bytes:
        made = self._write(value)
        if len(self) < NUMBERS_CACHED_MAX:
            self[value] = self.plain[value] = made
        return made


NUMBERS_CACHED_MAX = 20_000
"""The maximum number of entries in each cache of encoded numbers or arrays; each varint encoding has such
caches.
"""

_VARINT_BYTES: dict[str, VarintBytes] = {}


def varint_bytes(name: str, write: HeadWriter) -> VarintBytes:
    """Return the cache of encoded numbers for the encoding `name`, shared by all codecs."""
    return _VARINT_BYTES.setdefault(name, VarintBytes(write))


class VarintArrays(dict[tuple[int, ...], bytes]):
    """A cache of encoded short arrays of varints, since arrays such as replica lists often repeat."""

    def __init__(self, known: VarintBytes) -> None:
        super().__init__()
        self._known = known

    def __missing__(self, values: tuple[int, ...]) -> bytes:
        known = self._known
        made = b"".join([write_uvarint(len(values) + 1), *[known[each] for each in values]])
        if len(values) <= ARRAY_CACHED_MAX and len(self) < NUMBERS_CACHED_MAX:
            self[values] = made
        return made


ARRAY_CACHED_MAX = 8
"""The maximum length of an array of varints whose encoding is cached."""

_VARINT_ARRAYS: dict[str, VarintArrays] = {}


def varint_arrays(name: str, write: HeadWriter) -> VarintArrays:
    """Return the cache of compact arrays for the encoding `name`, shared by all codecs."""
    return _VARINT_ARRAYS.setdefault(name, VarintArrays(varint_bytes(name, write)))


class ArrayUnpackers(dict[int, Any]):
    """A cache of functions that decode an array and the fixed-size values after it; the key is the count.

    The key is the count on the wire: compact arrays send the count plus one, which is the `bias`.
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


class RunPackers(dict[Any, Any]):
    """A cache of functions that encode adjacent fields; the key is the encoded counts of their arrays.

    `plan` has the kind of each piece, and for an array the bias of its count: compact arrays send the count
    plus one.
    """

    def __init__(self, plan: Sequence[tuple[Any, int | None]]) -> None:
        super().__init__()
        self._plan = plan

    def __missing__(self, key: int | tuple[int, ...]) -> Any:
        sent = key if isinstance(key, tuple) else (key,)
        counts = iter(sent)
        codes = ">"
        total = 0
        for kind, bias in self._plan:
            if bias is None:
                codes += kind.code
            else:
                # A null array has no elements.
                count = max(next(counts) - bias, 0)
                total += count
                codes += f"{count}{kind.code}"
        compact = any(bias for _, bias in self._plan)
        if compact and max(sent) > 127:
            return functools.partial(self.slowly, sent)
        pack = struct.Struct(codes).pack
        if total <= COUNT_CACHED_MAX and len(self) < SHAPES_CACHED_MAX:
            self[key] = pack
        return pack

    def slowly(self, sent: tuple[int, ...], *values: Any) -> bytes:
        """Return the encoded bytes of adjacent fields if one of their lengths takes more than one byte."""
        counts = iter(sent)
        rest = iter(values)
        out = []
        for kind, bias in self._plan:
            if bias is None:
                out.append(kind.write(next(rest)))
            else:
                count = max(next(counts) - bias, 0)
                out.append(struct.pack(f">{count}{kind.code}", *itertools.islice(rest, count)))
        return b"".join(out)


PAUSE_BYTES_MIN = 8 * 1024
"""The size in bytes above which a message is decoded with the garbage collector paused."""


def pause_collector() -> bool:
    """Pause the garbage collector if it is enabled; return True if it was.

    While a message is decoded, nothing of it can be garbage. The collector would scan the growing
    heap of objects repeatedly, which takes half of the time of a large message.
    """
    if not gc.isenabled():
        return False
    gc.disable()
    return True


SECTION_TAGS_MAX = 1000
"""The maximum number of tagged fields in one section. Kafka's have a handful; each takes a microsecond to
read."""

MESSAGE_TAGS_MAX = 100_000
"""The maximum number of unknown tagged fields in one message. Newer peers may send one or two with each of
thousands of partitions; millions of them, which take two bytes each, would take seconds to read."""


def check_tags(count: int, bytes_left: int) -> None:
    """Check the count of a tagged-field section before it is read.

    Raises:
        DecodeError: there are more than `SECTION_TAGS_MAX`, or more than fit into the bytes left.
    """
    if count > SECTION_TAGS_MAX:
        raise DecodeError(f"{count} tagged fields in one section, the limit is {SECTION_TAGS_MAX}")
    if 2 * count > bytes_left:
        raise DecodeError(f"{count} tagged fields in {bytes_left} bytes")


def count_unknown_tags(seen: list[int], count: int) -> None:
    """Add `count` to `seen[0]`, the number of unknown tagged fields that a message has so far.

    Raises:
        DecodeError: there are more than `MESSAGE_TAGS_MAX`.
    """
    seen[0] += count
    if seen[0] > MESSAGE_TAGS_MAX:
        raise DecodeError(f"more than {MESSAGE_TAGS_MAX} unknown tagged fields in one message")


def read_unknown_tags(
    data: Data, position: int, size: int, count: int, seen: list[int]
) -> tuple[dict[int, bytes], int]:
    """Return the bytes of each tagged field by tag, for a struct of which no tags are known.

    `position` is the position after the section's count. The second result is the position after the section.
    """
    check_tags(count, size - position)
    count_unknown_tags(seen, count)
    tags: dict[int, bytes] = {}
    last = -1
    for _ in range(count):
        tag, position, end = read_tag(data, position, size, last)
        tags[tag] = bytes(data[position:end])
        last, position = tag, end
    return tags, position


def read_tag(data: Data, position: int, size: int, last: int) -> tuple[int, int, int]:
    """Return (tag, begin of the payload, end of the payload) of a tagged field."""
    tag, position = read_uvarint(data, position)
    length, position = read_uvarint(data, position)
    if tag <= last:
        raise DecodeError(f"tagged field {tag} after {last}: tags must increase")
    if position + length > size:
        raise DecodeError(f"tagged field {tag} of {length} bytes runs past the end")
    return tag, position, position + length


def write_tag_section(known: dict[int, bytes], unknown: dict[int, bytes] | None) -> bytes:
    """Return a whole tagged-field section: the count, then the fields by increasing tag."""
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
    """Return the size in bytes of a records value, which is one piece or a list of pieces."""
    return sum(map(len, records)) if isinstance(records, (list, tuple)) else len(records)


def add_records(parts: list[Any], records: Any) -> None:
    """Append a records value to `parts`: the value if it is one piece, or each piece of a list."""
    if isinstance(records, (list, tuple)):
        parts.extend(records)
    elif records is not None:
        parts.append(records)
