"""Write, read and check message sets of Kafka 0.7.

A message is an int32 length, a magic byte, with magic 1 an attributes byte (bits 0-1: the codec), the CRC-32
of the payload, and the payload. A set is a sequence of messages. A compressed message set is the payload of
one message, called the wrapper; wrappers may be nested. Offsets are byte positions, and only outermost
messages have them.

Source: "Writing a Driver for Kafka" and the compression page of that release; edge cases as in release 0.7.2.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

from penstock.errors import CorruptRecordError, DecodeError, EncodeError, UnpackLimitError
from penstock.records.compression.codecs import (
    CHUNK_RECORDS,
    DEFAULT_LIMITS,
    NESTING_MAX,
    CompressionCodec,
    UnpackBudget,
    UnpackLimits,
    compress,
)

if TYPE_CHECKING:
    from typing_extensions import Buffer

LENGTH_BYTES = 4
HEADER_BYTES = (5, 6)
"""The number of bytes between the length field and the payload, for magic 0 and 1."""

CODECS = (CompressionCodec.NONE, CompressionCodec.GZIP, CompressionCodec.SNAPPY)
"""The compression codecs, indexed by the value of the codec bits. The value 3 is invalid."""

_LENGTH = Struct(">i")
_HEAD0 = Struct(">ibI")
_HEAD1 = Struct(">ibbI")


class FetchSizeTooSmall(DecodeError):
    """The first message is larger than the response (error 4): fetch more than `size_max` bytes."""

    def __init__(self, needed_bytes: int, size_max: int) -> None:
        super().__init__(
            f"the first message has {needed_bytes} bytes, the answer {size_max}: raise fetch.size above that"
        )
        self.needed_bytes = needed_bytes


class PlainMessage(NamedTuple):
    """One decompressed message, as a consumer returns it.

    `offset` is the byte offset of its outermost message in the log; `next_offset` is the offset at which a
    reader resumes after it. Inside a wrapper (compressed message), `next_offset` is the wrapper's offset
    again, except for the last message.
    """

    payload: bytes
    offset: int
    next_offset: int


class Judged(NamedTuple):
    """The valid part of a message set: size, number of outermost messages, and largest payload in bytes."""

    size: int
    message_count: int
    payload_bytes_max: int


def encode_message(
    payload: Buffer, *, magic: int = 1, codec: CompressionCodec = CompressionCodec.NONE
) -> bytes:
    """Encode one message with `payload`, which must be a compressed message set if `codec` is not NONE.

    Raises:
        EncodeError: the payload is not bytes-like, magic is not 0 or 1, or there is a codec with magic 0,
            which has no field for it.
    """
    try:
        data = memoryview(payload)
    except TypeError:
        raise EncodeError(f"a message of Kafka 0.7 is bytes, not {type(payload).__name__}") from None
    if magic == 1:
        return b"".join((_HEAD1.pack(data.nbytes + 6, 1, CODECS.index(codec), zlib.crc32(data)), data))
    if magic != 0:
        raise EncodeError(f"Kafka 0.7 has messages of magic 0 and 1, not {magic}")
    if codec is not CompressionCodec.NONE:
        raise EncodeError("messages of magic 0 cannot be compressed; write magic 1")
    return b"".join((_HEAD0.pack(data.nbytes + 5, 0, zlib.crc32(data)), data))


def encode_set(
    payloads: Iterable[Buffer], *, codec: CompressionCodec = CompressionCodec.NONE, magic: int = 1
) -> bytes:
    """Encode a message set; a `codec` compresses it into one wrapper message, unless the set is empty.

    Raises:
        EncodeError: the codec is not one of 0.7's (none, gzip, snappy).
    """
    if codec not in CODECS:
        raise EncodeError(f"Kafka 0.7 has none, gzip and snappy, not {codec.name.lower()}")
    plain = b"".join(encode_message(payload, magic=magic) for payload in payloads)
    if codec is CompressionCodec.NONE or not plain:
        return plain
    return encode_message(compress(codec, plain), codec=codec)


class _Outer(NamedTuple):
    """One outermost message of a set: its start and end in the data, its codec and its payload."""

    start: int
    stop: int
    codec: CompressionCodec
    payload: memoryview


def _read(data: memoryview, start: int, stop: int) -> _Outer:
    """Return the message between two positions, after a check of its CRC."""
    size = stop - start - LENGTH_BYTES
    magic = data[start + 4] if size else -1
    if magic not in (0, 1):
        raise CorruptRecordError(f"magic {magic} at {start}: Kafka 0.7 has 0 and 1")
    header = HEADER_BYTES[magic]
    if size < header:
        raise CorruptRecordError(f"a message of {size} bytes at {start}: {header} is the least")
    bits = data[start + 5] & 3 if magic else 0
    if bits == 3:
        raise CorruptRecordError(f"codec 3 at {start}: Kafka 0.7 has none, gzip and snappy")
    payload = data[start + LENGTH_BYTES + header : stop]
    at = start + LENGTH_BYTES + header - 4
    if zlib.crc32(payload) != int.from_bytes(data[at : at + 4], "big"):
        raise CorruptRecordError(f"the message at {start} fails its checksum")
    return _Outer(start, stop, CODECS[bits], payload)


def cut(data: memoryview) -> Iterator[tuple[int, int]]:
    """Yield start and end of each complete message of a set; a partial one at the end is left out.

    Raises:
        CorruptRecordError: a length is negative.
    """
    position, end = 0, len(data)
    while end - position >= LENGTH_BYTES:
        (size,) = _LENGTH.unpack_from(data, position)
        if size < 0:
            raise CorruptRecordError(f"a message of {size} bytes at {position}")
        stop = position + LENGTH_BYTES + size
        if stop > end:
            return
        yield position, stop
        position = stop


def iter_messages(
    data: Buffer, base_offset: int = 0, unpack: UnpackLimits = DEFAULT_LIMITS
) -> Iterator[PlainMessage]:
    """Yield the messages in `data`, which was fetched from `base_offset` on, also those inside wrappers.

    Raises:
        CorruptRecordError: a checksum, length, magic or codec is wrong, or a wrapper does not decompress.
        UnpackLimitError: a wrapper decompresses to more than `unpack` allows.
        FetchSizeTooSmall: the bytes are only the beginning of a message.
    """
    view = memoryview(data)
    is_first = True
    for start, stop in cut(view):
        is_first = False
        outer = _read(view, start, stop)
        offset, resume = base_offset + start, base_offset + stop
        if outer.codec is CompressionCodec.NONE:
            yield PlainMessage(bytes(outer.payload), offset, resume)
            continue
        last: memoryview | None = None
        try:
            for payload in _unwrapped(outer, UnpackBudget(*unpack)):
                if last is not None:
                    yield PlainMessage(bytes(last), offset, offset)
                last = payload
        except UnpackLimitError as error:
            raise UnpackLimitError(f"the wrapper at byte {offset}: {error}") from None
        if last is not None:
            yield PlainMessage(bytes(last), offset, resume)
    if is_first and len(view) >= LENGTH_BYTES:
        (size,) = _LENGTH.unpack_from(view)
        raise FetchSizeTooSmall(LENGTH_BYTES + size, len(view))


def wrapped(data: Buffer) -> tuple[CompressionCodec, memoryview] | None:
    """Return (codec, compressed message set) of a wrapper message, or None if the message is not compressed.

    Raises:
        CorruptRecordError: a checksum, length, magic or codec of the message is wrong.
    """
    view = memoryview(data)
    wrapper = _read(view, 0, len(view))
    return None if wrapper.codec is CompressionCodec.NONE else (wrapper.codec, wrapper.payload)


def _unwrapped(wrapper: _Outer, budget: UnpackBudget, depth: int = 1) -> Iterator[memoryview]:
    """Yield the payloads in a wrapper and in nested wrappers, as views of the decompressed bytes."""
    if depth > NESTING_MAX:
        raise CorruptRecordError(f"wrappers nested more than {NESTING_MAX} deep at {wrapper.start}")
    data = _decompressed(wrapper, budget)
    count = 0
    for start, stop in cut(data):
        inner = _read(data, start, stop)
        if inner.codec is CompressionCodec.NONE:
            yield inner.payload
        else:
            yield from _unwrapped(inner, budget, depth + 1)
        count += 1
        if count == CHUNK_RECORDS:
            budget.take_records(count)
            count = 0
    budget.take_records(count)


def _decompressed(wrapper: _Outer, budget: UnpackBudget) -> memoryview:
    try:
        return budget.unpack(wrapper.codec, wrapper.payload)
    except UnpackLimitError:
        raise
    except DecodeError as error:
        raise CorruptRecordError(f"the wrapper at {wrapper.start} does not decompress: {error}") from error


def judge(data: memoryview, budget: UnpackBudget | None = None) -> Judged:
    """Check a producer's message set as a 0.7.2 broker does; return its valid part, which is to be stored.

    Messages inside wrappers are checked, too. An incomplete last message is left out.

    Raises:
        CorruptRecordError: a checksum, length, magic or codec is wrong, or no message is complete.
        UnpackLimitError: the wrappers decompress to more than `budget` allows.
    """
    if budget is None:
        budget = UnpackBudget()
    size = count = largest = 0
    for start, stop in cut(data):
        outer = _read(data, start, stop)
        if outer.codec is not CompressionCodec.NONE:
            for _ in _unwrapped(outer, budget):
                pass
        largest = max(largest, len(outer.payload))
        size, count = stop, count + 1
        if count % CHUNK_RECORDS == 0 and budget.pause is not None:
            budget.pause()
    if not count and len(data) >= LENGTH_BYTES:
        raise CorruptRecordError("the first message is incomplete")
    return Judged(size, count, largest)


def complete_size(data: memoryview) -> int:
    """Return the size in bytes of the complete outermost messages in `data`: a fetcher advances this far."""
    size = 0
    for _, stop in cut(data):
        size = stop
    return size


def sound_size(data: memoryview) -> int:
    """Return the size in bytes of the complete messages with correct checksums, which recovery keeps."""
    size = 0
    try:
        for start, stop in cut(data):
            _read(data, start, stop)
            size = stop
    except CorruptRecordError:
        pass
    return size
