"""Convert fetched bytes of Kafka 0.7 to Arrow batches, with the same columns as topics of later releases.

Messages have only a payload and an offset, so that `key` is null, `headers` is empty and `timestamp` is -1.
`offset` is the byte offset of the outermost message, at which a broker can fetch it again.

A compiled loop scans messages and their checksums: plain messages, and those inside a wrapper (a compressed
message) after decompression. `message_set` reads nested wrappers and damaged bytes, one message at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from penstock.errors import CorruptRecordError
from penstock.model import NO_TIMESTAMP, TimestampType
from penstock.records.arrow import to_arrow
from penstock.records.columns import (
    COLUMN_BYTES_MAX,
    NO_BYTES,
    BytesColumn,
    HeadersColumn,
    RecordColumns,
    empty,
)
from penstock.records.compression.codecs import (
    DEFAULT_LIMITS,
    UnpackLimits,
    decompress_into,
    naming_place,
    room_for,
)
from penstock.records.kernels.compiled import Bytes, Int32s, Ints, byte_at, copy_bytes, kernel
from penstock.v07 import message_set
from penstock.v07.message_set import iter_messages, wrapped

if TYPE_CHECKING:
    import pyarrow as pa
    from typing_extensions import Buffer

DONE, WRAPPER, CORRUPT = 0, 1, 2
"""The reasons why a scan ended: at the end or a partial message, before a wrapper, before a damaged
message."""

SLICES = 16

UNPACKED_BYTES = 16 << 20
"""The approximate size in bytes of the decompressed messages that are converted to columns together."""


def _crc_tables() -> Ints:
    """Return the tables of CRC-32 (reflected polynomial EDB88320) for 16 bytes at a time, in a row."""
    tables = np.zeros((SLICES, 256), dtype=np.int64)
    for number in range(256):
        value = number
        for _ in range(8):
            value = (value >> 1) ^ (0xEDB88320 if value & 1 else 0)
        tables[0, number] = value
    for later in range(1, SLICES):
        earlier = tables[later - 1]
        tables[later] = (earlier >> 8) ^ tables[0][earlier & 0xFF]
    return tables.reshape(-1)


CRC_TABLES = _crc_tables()


@kernel
def crc32(data: Bytes, start: int, stop: int, tables: Ints) -> int:
    """Return the CRC-32 of some bytes, computed 16 bytes at a time."""
    value = 0xFFFFFFFF
    at = start
    while at + 16 <= stop:
        value = (
            tables[3840 + ((value ^ byte_at(data, at)) & 0xFF)]
            ^ tables[3584 + (((value >> 8) ^ byte_at(data, at + 1)) & 0xFF)]
            ^ tables[3328 + (((value >> 16) ^ byte_at(data, at + 2)) & 0xFF)]
            ^ tables[3072 + ((value >> 24) ^ byte_at(data, at + 3))]
            ^ tables[2816 + byte_at(data, at + 4)]
            ^ tables[2560 + byte_at(data, at + 5)]
            ^ tables[2304 + byte_at(data, at + 6)]
            ^ tables[2048 + byte_at(data, at + 7)]
            ^ tables[1792 + byte_at(data, at + 8)]
            ^ tables[1536 + byte_at(data, at + 9)]
            ^ tables[1280 + byte_at(data, at + 10)]
            ^ tables[1024 + byte_at(data, at + 11)]
            ^ tables[768 + byte_at(data, at + 12)]
            ^ tables[512 + byte_at(data, at + 13)]
            ^ tables[256 + byte_at(data, at + 14)]
            ^ tables[byte_at(data, at + 15)]
        )
        at += 16
    while at < stop:
        value = (value >> 8) ^ tables[(value ^ byte_at(data, at)) & 0xFF]
        at += 1
    return value ^ 0xFFFFFFFF


@kernel
def _int32(data: Bytes, at: int) -> int:
    return (
        (byte_at(data, at) << 24)
        | (byte_at(data, at + 1) << 16)
        | (byte_at(data, at + 2) << 8)
        | byte_at(data, at + 3)
    )


@kernel
def scan(
    data: Bytes, position: int, end: int, check: bool, tables: Ints, starts: Ints, ends: Ints, out: Ints
) -> int:
    """Write the positions of the payloads of plain messages to `starts` and `ends`; return their number.

    `out` gets the position at which the scan stopped and the reason.
    """
    count = 0
    reason = 0
    while end - position >= 4:
        size = _int32(data, position)
        if size >= 0x80000000:
            reason = 2
            break
        stop = position + 4 + size
        if stop > end:
            break
        magic = byte_at(data, position + 4) if size > 0 else 255
        if magic > 1 or size < 5 + magic:
            reason = 2
            break
        if magic == 1 and byte_at(data, position + 5) & 3:
            reason = 1
            break
        start = position + 9 + magic
        if check and crc32(data, start, stop, tables) != _int32(data, start - 4):
            reason = 2
            break
        starts[count] = start
        ends[count] = stop
        count += 1
        position = stop
    out[0] = position
    out[1] = reason
    return count


@kernel
def gather(data: Bytes, starts: Ints, ends: Ints, count: int, target: Bytes, offsets: Int32s) -> None:
    """Copy payloads into `target`, one after the other, and their ends into `offsets`."""
    at = 0
    offsets[0] = 0
    for row in range(count):
        size = ends[row] - starts[row]
        copy_bytes(target, at, data, starts[row], size)
        at += size
        offsets[row + 1] = at


@kernel
def _complete_size(data: Bytes) -> int:
    position, end = 0, len(data)
    while end - position >= 4:
        size = _int32(data, position)
        if size >= 0x80000000:
            return -1
        if position + 4 + size > end:
            break
        position += 4 + size
    return position


def complete_size(data: Buffer) -> int:
    """Return the size in bytes of the complete messages in `data`: a compiled `message_set.complete_size`.

    Raises:
        CorruptRecordError: a length is negative.
    """
    view = memoryview(data)
    size = int(_complete_size(np.frombuffer(view, dtype=np.uint8))) if len(view) else 0
    return message_set.complete_size(view) if size < 0 else size


class DecodedMessages(NamedTuple):
    """Messages as columns, and the byte offset at which a reader continues after them."""

    columns: RecordColumns
    next_offset: int


def decode(
    data: Buffer, base_offset: int, *, check_crcs: bool = True, unpack: UnpackLimits = DEFAULT_LIMITS
) -> Iterator[DecodedMessages]:
    """Yield the messages in `data` as columns, in order; ignore a partial message at the end.

    `base_offset` is the byte offset from which `data` was fetched.

    Raises:
        CorruptRecordError: a message or wrapper is damaged; the messages before it have been yielded.
        UnpackLimitError: a wrapper (compressed message) decompresses to more than `unpack` allows.
    """
    view = memoryview(data).cast("B")
    if not len(view):
        return
    source = np.frombuffer(view, dtype=np.uint8)
    # The smallest message takes 9 bytes.
    capacity = len(view) // 9 + 1
    starts, ends = empty(capacity, np.int64), empty(capacity, np.int64)
    out = np.zeros(2, dtype=np.int64)
    wrappers = _Wrappers(unpack)
    position, end = 0, len(view)
    while position < end:
        count = scan(source, position, end, check_crcs, CRC_TABLES, starts, ends, out)
        stopped, reason = int(out[0]), int(out[1])
        if count:
            yield from wrappers.take()
            columns = _plain(source, starts[:count], ends[:count], base_offset, position)
            yield DecodedMessages(columns, base_offset + stopped)
        if reason == DONE:
            break
        # What the loop does not support, the plain reader does: it reads the wrapper, or raises.
        stop = max(stopped + 4 + int.from_bytes(view[stopped : stopped + 4], "big"), stopped + 4)
        if not wrappers.add(view[stopped:stop], base_offset + stopped):
            yield from wrappers.take()
            messages = list(iter_messages(view[stopped:stop], base_offset + stopped, unpack))
            if reason == CORRUPT:
                raise CorruptRecordError(f"the message at byte {base_offset + stopped} is damaged")
            if messages:
                rows = [(message.payload, message.offset) for message in messages]
                yield DecodedMessages(_unpacked(rows), base_offset + stop)
        elif wrappers.size > UNPACKED_BYTES:
            yield from wrappers.take()
        position = stop
    yield from wrappers.take()


class _Wrappers:
    """Decompresses and collects consecutive wrappers (compressed messages), to convert them together."""

    def __init__(self, unpack: UnpackLimits) -> None:
        self._unpack = unpack
        self._clear()

    def _clear(self) -> None:
        self.size = 0
        self._sets: list[Bytes] = []
        self._starts: list[Ints] = []
        self._ends: list[Ints] = []
        self._offsets: list[int] = []
        self._next_offset = 0

    def add(self, wrapper: memoryview, offset: int) -> bool:
        """Add the messages of a wrapper; return False if `iter_messages` must read this message instead."""
        try:
            found = wrapped(wrapper)
            if found is None:
                return False
            codec, compressed = found
            room: Bytes = empty(room_for(codec, compressed, self._unpack.max_bytes), np.uint8)
            inner = room[: decompress_into(codec, compressed, room.data)]
        except CorruptRecordError:
            return False  # broken, gzip in several members, or too large: the plain reader decides
        if not len(inner):
            return False
        capacity = len(inner) // 9 + 1
        starts, ends = empty(capacity, np.int64), empty(capacity, np.int64)
        out = np.zeros(2, dtype=np.int64)
        count = scan(inner, 0, len(inner), True, CRC_TABLES, starts, ends, out)
        if out[1] != DONE or count > self._unpack.max_records:
            return False
        self._sets.append(inner)
        self._starts.append(starts[:count] + self.size)
        self._ends.append(ends[:count] + self.size)
        self._offsets.append(offset)
        self._next_offset = offset + len(wrapper)
        self.size += len(inner)
        return True

    def take(self) -> Iterator[DecodedMessages]:
        """Yield the collected messages as columns, if there are any."""
        if not self._sets:
            return
        source = np.concatenate(self._sets, out=empty(self.size, np.uint8))
        counts = [len(starts) for starts in self._starts]
        starts, ends = np.concatenate(self._starts), np.concatenate(self._ends)
        offsets = np.repeat(np.array(self._offsets, dtype=np.int64), counts)
        next_offset = self._next_offset
        self._clear()
        if len(starts):
            yield DecodedMessages(_columns(_gathered(source, starts, ends), offsets), next_offset)


def to_batches(
    data: Buffer,
    base_offset: int,
    topic: str,
    partition: int,
    names: Sequence[str],
    *,
    check_crcs: bool = True,
    unpack: UnpackLimits = DEFAULT_LIMITS,
) -> Iterator[pa.RecordBatch]:
    """Yield the messages as Arrow batches with the columns `names` (see `penstock.model.COLUMN_NAMES`)."""
    with naming_place(f"{topic}-{partition}"):
        for columns, _ in decode(data, base_offset, check_crcs=check_crcs, unpack=unpack):
            yield to_arrow(columns, topic, partition, names)


def _plain(source: Bytes, starts: Ints, ends: Ints, base_offset: int, position: int) -> RecordColumns:
    offsets = empty(len(starts), np.int64)
    offsets[0] = base_offset + position
    offsets[1:] = ends[:-1] + base_offset
    return _columns(_gathered(source, starts, ends), offsets)


def _gathered(source: Bytes, starts: Ints, ends: Ints) -> BytesColumn:
    count = len(starts)
    total = int((ends - starts).sum())
    if total > COLUMN_BYTES_MAX:
        raise CorruptRecordError(f"{total} bytes of payload in one fetch: ask for less at a time")
    target, offsets = empty(total, np.uint8), empty(count + 1, np.int32)
    gather(source, starts, ends, count, target, offsets)
    return BytesColumn(target, offsets)


def _unpacked(rows: Sequence[tuple[bytes, int]]) -> RecordColumns:
    payloads = [payload for payload, _ in rows]
    offsets = np.zeros(len(rows) + 1, dtype=np.int32)
    np.cumsum([len(payload) for payload in payloads], out=offsets[1:])
    data = np.frombuffer(b"".join(payloads), dtype=np.uint8)
    return _columns(BytesColumn(data, offsets), np.array([offset for _, offset in rows], dtype=np.int64))


def _columns(values: BytesColumn, offsets: Ints) -> RecordColumns:
    count = len(offsets)
    zeros = np.zeros(count + 1, dtype=np.int32)
    nothing = BytesColumn(NO_BYTES, np.zeros(1, dtype=np.int32))
    return RecordColumns(
        count,
        offsets=offsets,
        timestamps=np.full(count, NO_TIMESTAMP, dtype=np.int64),
        timestamp_types=np.full(count, int(TimestampType.NONE), dtype=np.int32),
        key=BytesColumn(NO_BYTES, zeros, np.zeros(count // 8 + 1, dtype=np.uint8), count),
        value=values,
        headers=HeadersColumn(zeros, nothing, nothing),
    )
