"""Decodes and encodes messages of magic 0 and 1, the format before Kafka 0.11, as rows.

A message is its own entry in the log: offset, size, checksum, key, value. A compressed message, called
wrapper, has a whole set of messages as its value. Rows and errors are the same as in `batch`. The module does
not need numpy; `decode` converts long sequences of messages to columns with kernels.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from penstock.errors import CorruptRecordError, EncodeError, UnpackLimitError
from penstock.headers import HEADERLESS
from penstock.model import NO_TIMESTAMP, Record, TimestampType
from penstock.records.compression.codecs import (
    CHUNK_RECORDS,
    NESTING_MAX,
    UNPACKED_BYTES_MAX,
    UNPACKED_RECORDS_MAX,
    CompressionCodec,
    UnpackBudget,
    compress,
)
from penstock.records.format.batch_header import (
    CODEC_MASK,
    LENGTH_EXTRA_BYTES,
    LOG_APPEND_BIT,
    MESSAGE_ATTRIBUTES_POSITION,
    MESSAGE_CRC_POSITION,
    split_batches,
)
from penstock.records.format.crc import crc32

if TYPE_CHECKING:
    from typing_extensions import Buffer

_HEAD = struct.Struct(">qiIbb")
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")
_CHECKED_POSITION = MESSAGE_CRC_POSITION + 4
_MAGICS = (0, 1)

MessageRow = tuple["bytes | None", "bytes | None", int]
"""The parts of a message: key, value, timestamp in milliseconds (ignored by magic 0)."""


class LegacyMessage(NamedTuple):
    """One entry of a message set of magic 0 or 1. Key and value are views of the input buffer."""

    offset: int
    crc: int
    magic: int
    attributes: int
    timestamp: int
    key: memoryview | None
    value: memoryview | None

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def timestamp_type(self) -> TimestampType:
        if self.magic == 0:
            return TimestampType.NONE
        return (
            TimestampType.LOG_APPEND_TIME if self.attributes & LOG_APPEND_BIT else TimestampType.CREATE_TIME
        )


def read_message(buffer: Buffer, start: int, end: int) -> LegacyMessage:
    """Read the message of magic 0 or 1 in `buffer[start:end]`.

    Raises:
        CorruptRecordError: the magic is not 0 or 1, or the message does not end at `end`.
    """
    view = memoryview(buffer)
    try:
        offset, length, crc, magic, attributes = _HEAD.unpack_from(view, start)
        if magic not in _MAGICS or start + LENGTH_EXTRA_BYTES + length != end:
            raise CorruptRecordError(f"a message of magic {magic} and length {length} in {end - start} bytes")
        position = start + _HEAD.size
        timestamp = NO_TIMESTAMP
        if magic == 1:
            timestamp = _INT64.unpack_from(view, position)[0]
            position += 8
        key, position = _read_bytes(view, position, end)
        value, position = _read_bytes(view, position, end)
    except struct.error:
        raise CorruptRecordError(f"a message of {end - start} bytes is cut short") from None
    if position != end:
        raise CorruptRecordError(f"{end - position} bytes are left over in a message")
    return LegacyMessage(offset, crc, magic, attributes, timestamp, key, value)


def _read_bytes(view: memoryview, position: int, end: int) -> tuple[memoryview | None, int]:
    size = _INT32.unpack_from(view, position)[0]
    position += 4
    if size > end - position:
        raise CorruptRecordError(f"a field of {size} bytes in a message, {end - position} are left")
    if size < 0:
        return None, position
    return view[position : position + size], position + size


def verify_message_crc(buffer: Buffer, start: int, end: int) -> None:
    """Verify the checksum of the message in `buffer[start:end]`.

    Raises:
        CorruptRecordError: the checksum does not match the bytes.
    """
    expected = int.from_bytes(
        memoryview(buffer)[start + MESSAGE_CRC_POSITION : start + _CHECKED_POSITION], "big"
    )
    actual = crc32(memoryview(buffer)[start + _CHECKED_POSITION : end])
    if actual != expected:
        raise CorruptRecordError(
            f"the message at position {start} has checksum {actual:#010x}, its header says {expected:#010x}"
        )


def inner_messages(
    wrapper: LegacyMessage,
    budget: UnpackBudget,
    *,
    verify: bool = True,
    mixed: bool = False,
    nested: bool = False,
) -> tuple[memoryview, int, bool]:
    """Decompress a `wrapper`; return (message set, number to add to offsets, True if wrappers are inside).

    Inner offsets of magic 1 are relative: the last inner message has the wrapper's offset, unless a producer
    has left the wrapper's offset at 0. Inner offsets of magic 0 are absolute. If `mixed`, messages inside may
    have a magic other than the wrapper's; if `nested`, there may be wrappers inside. The wrapper's checksum
    covers only the compressed bytes, so each message inside has a checksum of its own.

    Raises:
        CorruptRecordError: the wrapper is empty or incomplete, contains a message that is not allowed in it,
        or (if `verify`) contains a message with a wrong checksum. UnpackLimitError: the wrapper contains more
        than `budget` allows.
    """
    if wrapper.value is None:
        raise CorruptRecordError("a compressed message without a value")
    if wrapper.codec == CompressionCodec.ZSTD:
        raise CorruptRecordError(f"zstd in a message of magic {wrapper.magic}")
    inner = budget.unpack(wrapper.codec, wrapper.value)
    last_offset = None
    position = count = 0
    has_wrappers = False
    for start, end, magic in split_batches(inner):
        if (magic != wrapper.magic or magic > 1) and not (mixed and magic <= 1):
            raise CorruptRecordError("a compressed message holds one of another magic")
        if inner[start + MESSAGE_ATTRIBUTES_POSITION] & CODEC_MASK:
            if not nested:
                raise CorruptRecordError("a compressed message holds a compressed one")
            has_wrappers = True
        if verify:
            verify_message_crc(inner, start, end)
        last_offset = _INT64.unpack_from(inner, start)[0]
        position = end
        count += 1
        if count == CHUNK_RECORDS:
            budget.take_records(count)
            count = 0
    budget.take_records(count)
    if last_offset is None or position != len(inner):
        raise CorruptRecordError("a compressed message holds no whole number of messages")
    if wrapper.magic == 0 or wrapper.offset == 0:
        return inner, 0, has_wrappers
    return inner, wrapper.offset - last_offset, has_wrappers


def iter_messages(
    buffer: Buffer,
    start: int,
    end: int,
    *,
    budget: UnpackBudget | None = None,
    verify: bool = True,
    mixed: bool = False,
    nested: bool | None = None,
) -> Iterator[LegacyMessage]:
    """Yield the message in `buffer[start:end]`, or the messages inside it if it is a wrapper.

    Offsets are absolute. A log-append timestamp of the wrapper applies to every message inside. If `mixed`,
    messages inside may have a magic other than the wrapper's. If `nested`, wrappers may contain wrappers, as
    in Kafka 0.8 and 0.9; by default only wrappers of magic 0 may.

    Raises:
        CorruptRecordError: wrong checksum (if `verify`) or layout. UnpackLimitError: a wrapper contains more
        than `budget` allows, or is nested deeper than `NESTING_MAX`.
    """
    if verify:
        verify_message_crc(buffer, start, end)
    message = read_message(buffer, start, end)
    if not message.codec:
        yield message
        return
    if budget is None:
        budget = UnpackBudget()
    if nested is None:
        nested = message.magic == 0
    yield from unwrap(message, budget, verify=verify, mixed=mixed, nested=nested)


def unwrap(
    wrapper: LegacyMessage,
    budget: UnpackBudget,
    *,
    verify: bool = True,
    mixed: bool = False,
    nested: bool = False,
    depth: int = 1,
) -> Iterator[LegacyMessage]:
    """Yield the messages inside a compressed `wrapper`. Arguments and errors: as in `iter_messages`."""
    if depth > NESTING_MAX:
        raise UnpackLimitError(f"wrappers are nested more than {NESTING_MAX} deep")
    inner, delta, _ = inner_messages(wrapper, budget, verify=verify, mixed=mixed, nested=nested)
    appended = wrapper.timestamp_type == TimestampType.LOG_APPEND_TIME
    for start, end, _ in split_batches(inner):
        one = read_message(inner, start, end)
        if appended:
            one = one._replace(timestamp=wrapper.timestamp, attributes=one.attributes | LOG_APPEND_BIT)
        if delta:
            one = one._replace(offset=one.offset + delta)
        if one.codec:
            yield from unwrap(one, budget, verify=verify, mixed=mixed, nested=nested, depth=depth + 1)
        else:
            yield one


def flattened(wrapper: LegacyMessage, budget: UnpackBudget, *, verify: bool = True) -> bytes:
    """Decompress a wrapper of magic 0 that contains wrappers; return one uncompressed message set.

    Raises:
        CorruptRecordError, UnpackLimitError: as `iter_messages`.
    """
    out: list[bytes] = []
    for one in unwrap(wrapper, budget, verify=verify, nested=True):
        out.append(encode_message(one.magic, one.offset, one.key, one.value, one.timestamp, one.attributes))
        budget.take_bytes(len(out[-1]))
    return b"".join(out)


def decode_entry(
    buffer: Buffer,
    start: int,
    end: int,
    topic: str,
    partition: int,
    *,
    verify: bool = True,
    limit_bytes: int = UNPACKED_BYTES_MAX,
    limit_records: int = UNPACKED_RECORDS_MAX,
) -> list[Record]:
    """Decode the message or wrapper of magic 0 or 1 in `buffer[start:end]`, for `batch.decode_batch`.

    Raises:
        CorruptRecordError: wrong checksum (if `verify`) or layout.
        UnpackLimitError: a wrapper holds more bytes or records than the limits allow.
    """
    return list(
        iter_entry(
            buffer, start, end, topic, partition, UnpackBudget(limit_bytes, limit_records), verify=verify
        )
    )


def iter_entry(
    buffer: Buffer,
    start: int,
    end: int,
    topic: str,
    partition: int,
    budget: UnpackBudget,
    *,
    verify: bool = True,
    record_class: type[Record] = Record,
) -> Iterator[Record]:
    """Decode the message or wrapper of magic 0 or 1 in `buffer[start:end]`; yield its records.

    The records are instances of `record_class`.

    Raises:
        CorruptRecordError: wrong checksum (if `verify`) or layout.
        UnpackLimitError: a wrapper holds more than `budget` allows.
    """
    for message in iter_messages(buffer, start, end, budget=budget, verify=verify):
        yield record_class(
            topic,
            partition,
            message.offset,
            message.timestamp,
            message.timestamp_type,
            None if message.key is None else bytes(message.key),
            None if message.value is None else bytes(message.value),
            HEADERLESS,
        )


def encode_message(
    magic: int, offset: int, key: Buffer | None, value: Buffer | None, timestamp: int, attributes: int = 0
) -> bytes:
    """Encode one message of magic 0 or 1, with its offset and checksum; return its bytes.

    Raises:
        EncodeError: the magic is not 0 or 1, or a field is too large.
    """
    if magic not in _MAGICS:
        raise EncodeError(f"messages have magic 0 or 1, not {magic}")
    try:
        checked = b"".join(
            (
                bytes((magic, attributes)),
                _INT64.pack(timestamp) if magic else b"",
                b"\xff\xff\xff\xff" if key is None else _INT32.pack(memoryview(key).nbytes),
                key or b"",
                b"\xff\xff\xff\xff" if value is None else _INT32.pack(memoryview(value).nbytes),
                value or b"",
            )
        )
        return (
            _INT64.pack(offset) + _INT32.pack(len(checked) + 4) + crc32(checked).to_bytes(4, "big") + checked
        )
    except (struct.error, TypeError) as error:
        raise EncodeError(f"a message cannot be written: {error}") from error


def encode_message_set(
    records: Sequence[MessageRow],
    magic: int,
    *,
    codec: int = CompressionCodec.NONE,
    level: int | None = None,
    offsets: Sequence[int] | None = None,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
) -> bytes:
    """Encode records as messages of magic 0 or 1; with a codec, as one wrapper of these messages.

    `offsets` are absolute (default 0, 1, 2, ...). A wrapper of magic 1 has relative offsets, counted from the
    first, and the greatest timestamp; an lz4 wrapper of magic 0 has the wrong header checksum that readers of
    magic 0 expect.

    Raises:
        EncodeError: there are no records, the magic is not 0 or 1, the codec is zstd, or a field is too
            large.
    """
    if not records:
        raise EncodeError("a message set needs at least one record")
    if offsets is None:
        offsets = range(len(records))
    appended = LOG_APPEND_BIT if magic == 1 and timestamp_type == TimestampType.LOG_APPEND_TIME else 0
    if not codec:
        return b"".join(
            encode_message(magic, offset, key, value, timestamp, appended)
            for offset, (key, value, timestamp) in zip(offsets, records, strict=True)
        )
    if codec == CompressionCodec.ZSTD:
        raise EncodeError(f"messages of magic {magic} cannot be compressed with zstd")
    base = offsets[0] if magic == 1 else 0
    inner = b"".join(
        encode_message(magic, offset - base, key, value, timestamp, appended)
        for offset, (key, value, timestamp) in zip(offsets, records, strict=True)
    )
    value = compress(codec, inner, level, broken_lz4_checksum=magic == 0)
    greatest = max(timestamp for _, _, timestamp in records)
    return encode_message(magic, offsets[-1], None, value, greatest, codec | appended)
