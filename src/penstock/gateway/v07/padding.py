"""Pads messages of Kafka 0.7 to an exact size, so that consumers' byte offsets encode record offsets.

`WRAPPED` messages are compressed with gzip, which the readers of Apache Kafka support since release 0.7.0.
The padding is the comment in the header of the gzip stream (RFC 1952), which decompression skips.

`PLAIN` messages are for drivers that do not decompress. They have magic 0, which every driver reads, and the
padding is spaces after the value, which readers of JSON and of other texts skip.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from struct import Struct
from typing import NamedTuple

from penstock.gateway.v07.offsets import NoCodeError, ReaderPlace
from penstock.records.compression.codecs import CompressionCodec
from penstock.v07.message_set import encode_message

GZIP_HEAD = bytes((0x1F, 0x8B, 8, 0x10, 0, 0, 0, 0, 0, 0xFF))
"""The header of the gzip streams that are written: deflate, with a comment, no time, unknown system."""

STORED_MAX = 0xFFFF
"""The largest size, in bytes, of one stored (uncompressed) block of a deflate stream."""

PLAIN_OVERHEAD_BYTES = 9
"""The number of bytes of a message of magic 0 in addition to its payload."""

OVERHEAD_BYTES = 10 + len(GZIP_HEAD) + 1 + 8
"""The number of bytes of a compressed message in addition to the deflate stream: message fields, gzip header,
end of the comment, and gzip trailer."""

MESSAGE_OVERHEAD_BYTES = OVERHEAD_BYTES + 5 + 10
"""The number of bytes that a small record needs in addition to its value, in a gzip message with one stored
block."""

WRAPPED, PLAIN = "wrapped", "plain"

DEFLATE_LEVEL = 1

_STORED = Struct("<BHH")
_TRAILER = Struct("<II")


class Value(NamedTuple):
    """The offset and value of one record in the cluster. A null value is stored as an empty one."""

    offset: int
    value: bytes


class _Next(NamedTuple):
    """The next message to write: its number of values, its minimum size, and a function that pads it."""

    values: int
    size: int
    padded: Callable[[int], bytes]


class Packed(NamedTuple):
    """A message set of Kafka 0.7, its number of records, and the position of a consumer that has read it."""

    data: bytes
    place: ReaderPlace
    records: int


def deflated(data: bytes, *, is_tight: bool) -> bytes:
    """Return a raw deflate stream of `data`: compressed if `is_tight`, else stored, which is fast."""
    if is_tight:
        squeezer = zlib.compressobj(DEFLATE_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
        return squeezer.compress(data) + squeezer.flush()
    blocks = range(0, len(data), STORED_MAX) or (0,)
    pieces: list[bytes] = []
    for start in blocks:
        block = data[start : start + STORED_MAX]
        is_last = start + STORED_MAX >= len(data)
        pieces += [_STORED.pack(is_last, len(block), len(block) ^ 0xFFFF), block]
    return b"".join(pieces)


def padded_message(data: bytes, stream: bytes, size: int) -> bytes:
    """Return a compressed message of exactly `size` bytes with the message set `data` in it.

    `stream` is the deflate stream of `data`.
    """
    padding = b" " * (size - OVERHEAD_BYTES - len(stream))
    trailer = _TRAILER.pack(zlib.crc32(data), len(data) & 0xFFFF_FFFF)
    return encode_message(b"".join((GZIP_HEAD, padding, b"\0", stream, trailer)), codec=CompressionCodec.GZIP)


def pack(place: ReaderPlace, values: Sequence[Value], size_max: int, form: str = WRAPPED) -> Packed:
    """Encode the first of `values` as messages of at most `size_max` bytes, for a consumer at `place`.

    A message has one record; a compressed message has several if that reduces the debt. If not even the first
    message fits, it is cut at `size_max`: consumers of 0.7 then report that the fetch size is too small. If a
    gap in the offsets makes the padding larger than `size_max`, a compressed message without records first
    moves the consumer nearer to the next record.

    Raises:
        NoCodeError: no byte offset can encode the position after the first record. (Later records without
            such an offset are left out.)
    """
    pieces: list[bytes] = []
    left, index = size_max, 0
    while index < len(values):
        following = _plain(values[index]) if form == PLAIN else _bundle(place, values, index)
        try:
            then = place.after(values[index + following.values - 1].offset + 1, following.size)
        except NoCodeError:
            if pieces:
                break
            raise
        size = then.code - place.code
        if size > left:
            if pieces:
                break
            if values[index].offset == place.offset:
                return Packed(following.padded(size)[:size_max], place, 0)
            if form == PLAIN:
                raise NoCodeError(
                    f"the next record has offset {values[index].offset}, which takes a fetch of {size} bytes",
                    place._replace(offset=values[index].offset, debt=0),
                )
            return _through_gap(place, values[index].offset, size_max)
        pieces.append(following.padded(size))
        left -= size
        place, index = then, index + following.values
    return Packed(b"".join(pieces), place, index)


def _through_gap(place: ReaderPlace, next_offset: int, size_max: int) -> Packed:
    """Return a message without records, whose size moves a consumer nearer to a distant record."""
    nothing = _wrapped(b"", 0, is_tight=False)
    steps = max(1, min(next_offset - place.offset, size_max >> place.slot_bits))
    while True:
        then = place.after(place.offset + steps, nothing.size)
        size = then.code - place.code
        if size <= size_max:
            return Packed(nothing.padded(size), then, 0)
        if steps == 1:
            return Packed(nothing.padded(size)[:size_max], place, 0)
        steps -= 1


def _plain(value: Value) -> _Next:
    return _Next(
        1,
        PLAIN_OVERHEAD_BYTES + len(value.value),
        lambda size: encode_message(value.value.ljust(size - PLAIN_OVERHEAD_BYTES), magic=0),
    )


def _wrapped(data: bytes, values: int, *, is_tight: bool) -> _Next:
    """Return a gzip message that contains a message set.

    The gzip stream is compressed if `is_tight` and if that saves space; otherwise it is stored.
    """
    stream = deflated(data, is_tight=is_tight)
    if is_tight and len(stream) > len(data):
        stream = deflated(data, is_tight=False)
    return _Next(values, OVERHEAD_BYTES + len(stream), lambda size: padded_message(data, stream, size))


def _bundle(place: ReaderPlace, values: Sequence[Value], index: int) -> _Next:
    """Return the next compressed message: with one value, or with several if the consumer has a debt.

    Each further value in a message reduces the debt, the number of slots that the byte offset is ahead.
    """
    slot = 1 << place.slot_bits
    data = encode_message(values[index].value)
    count = 1
    room = slot - OVERHEAD_BYTES - _STORED.size
    while place.debt and index + count < len(values):
        following = values[index + count]
        if following.offset - place.offset > place.debt:
            break  # there is no debt to pay back with it
        inner = encode_message(following.value)
        if len(data) + len(inner) > room:
            break
        data += inner
        count += 1
    return _wrapped(data, count, is_tight=len(data) > room)
