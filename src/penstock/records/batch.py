"""Record batches of magic 2: the header, the frame around the records, and the records as rows.

Promises: a reader never looks past the bytes it was given, and whatever bytes come in, the outcome
is a value or a `DecodeError`. Imports neither numpy nor anything else that is slow to load: the
broker and the log live on this module. Columns are made by `decode` and `encode`.

Layout: protocol definition of KIP-98 (batch) and KIP-82 (headers). All numbers are big-endian; the
varints inside records are zig-zag.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from penstock.errors import CorruptRecordError, EncodeError
from penstock.model import Header, Record, TimestampType
from penstock.records.compression.budget import (
    CHUNK_RECORDS,
    UNPACKED_BYTES_MAX,
    UNPACKED_RECORDS_MAX,
    UnpackBudget,
)
from penstock.records.compression.codecs import Codec, compress
from penstock.records.crc import crc32c
from penstock.records.row_format import RowLike as RowLike
from penstock.records.row_format import decode_records, decode_some, encode_records
from penstock.records.varint import encode_varint as encode_varint
from penstock.records.varint import read_unsigned as read_unsigned
from penstock.records.varint import read_varint as read_varint

if TYPE_CHECKING:
    from typing_extensions import Buffer

_HEADER = struct.Struct(">qiibIhiqqqhii")
unpack_header = _HEADER.unpack_from
"""Read the fields of `BatchHeader` from a buffer, unjudged; `read_header` is for all who can wait for it."""

_ENTRY = struct.Struct(">qi4xb")
_PRODUCER = struct.Struct(">qhi")
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")
_UINT32 = struct.Struct(">I")

HEADER_BYTES = _HEADER.size
"""Bytes of a batch before its first record: 61."""

LENGTH_EXTRA_BYTES = 12
"""Bytes of a batch, or of a message of magic 0 or 1, that its own length field does not count."""

_LENGTH_MIN = {0: 14, 1: 22, 2: HEADER_BYTES - LENGTH_EXTRA_BYTES}
CRC_AT = 17
_ATTRIBUTES_AT, _MAX_TIMESTAMP_AT, _PRODUCER_AT = 21, 35, 43
_ENTRY_BYTES = _ENTRY.size

CODEC_MASK = 0x07
LOG_APPEND_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40

RECORD_BYTES_MIN = 7
"""Length, attributes, two deltas, two lengths and the header count, one byte each."""

DECOMPRESSED_BYTES_MAX = UNPACKED_BYTES_MAX
"""What one compressed batch may grow to where the caller names no limit."""

ABORT_MARKER, COMMIT_MARKER = 0, 1


class BatchHeader(NamedTuple):
    """The fixed part of a batch, field by field as on the wire."""

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def codec(self) -> int:
        """Bits 0-2. A number: an unknown codec is an error only for whoever reads the records."""
        return self.attributes & CODEC_MASK

    @property
    def timestamp_type(self) -> TimestampType:
        return (
            TimestampType.LOG_APPEND_TIME if self.attributes & LOG_APPEND_BIT else TimestampType.CREATE_TIME
        )

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_BIT)

    @property
    def has_delete_horizon(self) -> bool:
        """Compaction has put its delete horizon (KIP-534) in the place of the base timestamp."""
        return bool(self.attributes & DELETE_HORIZON_BIT)

    @property
    def size(self) -> int:
        """Bytes of the whole batch."""
        return self.batch_length + LENGTH_EXTRA_BYTES

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record; it wraps from 2^31 - 1 to 0. -1 where there is none."""
        if self.base_sequence < 0:
            return -1
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF


_new = tuple.__new__
"""Makes a header of a tuple that has as many fields, without looking."""


# --- frames -------------------------------------------------------------------------------------------


def read_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """Read the header of the batch of magic 2 that begins at `position`.

    Raises:
        CorruptRecordError: the bytes end too early, the magic is not 2, or a count is impossible.
    """
    try:
        header = _new(BatchHeader, _HEADER.unpack_from(buffer, position))
    except struct.error:
        raise CorruptRecordError(
            f"a batch header needs {HEADER_BYTES} bytes behind position {position}"
        ) from None
    if header.magic != 2:
        raise CorruptRecordError(f"a batch of magic {header.magic} where magic 2 is due")
    if header.batch_length < _LENGTH_MIN[2]:
        raise CorruptRecordError(f"a batch of length {header.batch_length}, the least is {_LENGTH_MIN[2]}")
    if header.record_count < 0 or header.last_offset_delta < 0:
        raise CorruptRecordError(
            f"a batch with {header.record_count} records and last offset delta {header.last_offset_delta}"
        )
    return header


def split_batches(buffer: Buffer) -> Iterator[tuple[int, int, int]]:
    """Yield (start, end, magic) of every whole batch, or message of magic 0 or 1, in `buffer`.

    Stops quietly at a partial one at the end: a fetch response may be cut anywhere.

    Raises:
        CorruptRecordError: an unknown magic, or a length too small for it.
    """
    size = memoryview(buffer).nbytes
    start = 0
    unpack = _ENTRY.unpack_from
    while start + _ENTRY_BYTES <= size:
        _, length, magic = unpack(buffer, start)
        if magic not in _LENGTH_MIN or length < _LENGTH_MIN[magic]:
            raise CorruptRecordError(f"a batch of magic {magic} and length {length} at position {start}")
        end = start + LENGTH_EXTRA_BYTES + length
        if end > size:
            return
        yield start, end, magic
        start = end


def verify_crc(buffer: Buffer, start: int, end: int) -> None:
    """Compare the checksum of the batch in `buffer[start:end]` with its bytes.

    Raises:
        CorruptRecordError: they differ.
    """
    if end - start < HEADER_BYTES or start < 0 or end > memoryview(buffer).nbytes:
        raise CorruptRecordError(f"a batch of {end - start} bytes is cut short")
    expected = _UINT32.unpack_from(buffer, start + CRC_AT)[0]
    actual = crc32c(memoryview(buffer)[start + _ATTRIBUTES_AT : end])
    if actual != expected:
        raise CorruptRecordError(
            f"the batch at position {start} has checksum {actual:#010x}, its header says {expected:#010x}"
        )


def set_base_offset(buffer: bytearray | memoryview, start: int, base_offset: int) -> None:
    """Write the base offset of the batch at `start`. The checksum does not cover it."""
    _INT64.pack_into(buffer, start, base_offset)


def set_leader_epoch(buffer: bytearray | memoryview, start: int, leader_epoch: int) -> None:
    """Write the partition leader epoch of the batch at `start`. The checksum does not cover it."""
    _INT32.pack_into(buffer, start + LENGTH_EXTRA_BYTES, leader_epoch)


def set_max_timestamp_log_append(buffer: bytearray | memoryview, start: int, end: int, now_ms: int) -> None:
    """Make `now_ms` the time of every record in the batch, as a broker with log-append time does."""
    attributes = _INT16.unpack_from(buffer, start + _ATTRIBUTES_AT)[0]
    _INT16.pack_into(buffer, start + _ATTRIBUTES_AT, attributes | LOG_APPEND_BIT)
    _INT64.pack_into(buffer, start + _MAX_TIMESTAMP_AT, now_ms)
    refresh_crc(buffer, start, end)


def set_producer(
    buffer: bytearray | memoryview,
    start: int,
    end: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
) -> None:
    """Make the batch one of an idempotent producer: its id, its epoch, the sequence of the first record."""
    _PRODUCER.pack_into(buffer, start + _PRODUCER_AT, producer_id, producer_epoch, base_sequence)
    refresh_crc(buffer, start, end)


def refresh_crc(buffer: bytearray | memoryview, start: int, end: int) -> None:
    """Write the checksum that the bytes of the batch have now."""
    _UINT32.pack_into(buffer, start + CRC_AT, crc32c(memoryview(buffer)[start + _ATTRIBUTES_AT : end]))


def pack_header(
    batch: bytearray | memoryview,
    *,
    base_offset: int,
    partition_leader_epoch: int,
    attributes: int,
    record_count: int,
    base_timestamp: int,
    max_timestamp: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    last_offset_delta: int | None = None,
) -> None:
    """Write the header in front of the records that `batch` already holds, with a checksum of 0.

    Raises:
        EncodeError: a number does not fit into its field.
    """
    try:
        _HEADER.pack_into(
            batch,
            0,
            base_offset,
            len(batch) - LENGTH_EXTRA_BYTES,
            partition_leader_epoch,
            2,
            0,
            attributes,
            record_count - 1 if last_offset_delta is None else last_offset_delta,
            base_timestamp,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            record_count,
        )
    except struct.error as error:
        raise EncodeError(f"a batch header cannot be written: {error}") from None


def records_bytes(
    buffer: Buffer, start: int, end: int, header: BatchHeader, budget: UnpackBudget | None = None
) -> memoryview:
    """Return the records of a batch, decompressed, back to back.

    Raises:
        CorruptRecordError: they do not decompress, or cannot be as many as the header says.
        UnpackLimitError: they are compressed, and take more bytes than `budget` allows.
    """
    records = memoryview(buffer)[start + HEADER_BYTES : end]
    if header.codec and header.record_count:
        if budget is None:
            budget = UnpackBudget()
        records = budget.unpack(header.codec, records)
    if header.record_count * RECORD_BYTES_MIN > len(records):
        raise CorruptRecordError(f"{header.record_count} records do not fit into {len(records)} bytes")
    return records


# --- rows to a batch ----------------------------------------------------------------------------------


def record_size_max(key: bytes | None, value: bytes | None, headers: Sequence[Header] = ()) -> int:
    """Return how many bytes a record takes in an uncompressed batch at most (its deltas may take less)."""
    size = 36 + (len(key) if key else 0) + (len(value) if value else 0)
    for name, content in headers:
        size += 10 + 3 * len(name) + (len(content) if content else 0)
    return size


def encode_batch(
    records: Sequence[RowLike],
    *,
    base_offset: int = 0,
    codec: int = Codec.NONE,
    level: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    is_transactional: bool = False,
    is_control: bool = False,
    partition_leader_epoch: int = -1,
    offset_deltas: Sequence[int] | None = None,
) -> bytes:
    """Write one batch of magic 2.

    `offset_deltas` gives offsets with gaps (default 0, 1, 2, ...), ascending, the last one being the
    batch's last offset delta.

    Raises:
        EncodeError: no records, a value of a wrong type, or one that no field can hold.
    """
    if not records:
        raise EncodeError("a batch needs at least one record")
    if offset_deltas is not None and len(offset_deltas) != len(records):
        raise EncodeError(f"{len(offset_deltas)} offset deltas for {len(records)} records")
    timestamps = [record[3] for record in records]
    try:
        body = encode_records(records, timestamps[0], offset_deltas)
        last_offset_delta = len(records) - 1 if offset_deltas is None else offset_deltas[-1]
        attributes = (
            codec
            | (LOG_APPEND_BIT if timestamp_type == TimestampType.LOG_APPEND_TIME else 0)
            | (TRANSACTIONAL_BIT if is_transactional else 0)
            | (CONTROL_BIT if is_control else 0)
        )
        if codec:
            body = compress(codec, body, level)
        batch = bytearray(HEADER_BYTES + len(body))
        batch[HEADER_BYTES:] = body
        pack_header(
            batch,
            base_offset=base_offset,
            partition_leader_epoch=partition_leader_epoch,
            attributes=attributes,
            record_count=len(records),
            base_timestamp=timestamps[0],
            max_timestamp=max(timestamps),
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            last_offset_delta=last_offset_delta,
        )
    except EncodeError:
        raise
    except (TypeError, ValueError, AttributeError) as error:
        raise EncodeError(f"a record cannot be written: {error}") from error
    refresh_crc(batch, 0, len(batch))
    return bytes(batch)


# --- a batch to rows ----------------------------------------------------------------------------------


def decode_batch(
    buffer: Buffer,
    start: int,
    end: int,
    topic: str,
    partition: int,
    *,
    verify: bool = True,
    limit_bytes: int = DECOMPRESSED_BYTES_MAX,
    limit_records: int = UNPACKED_RECORDS_MAX,
) -> list[Record]:
    """Return the records of the batch, or of the message of magic 0 or 1, in `buffer[start:end]`.

    Everything in it, control records too: whoever hands records to an application looks at the
    header first, or uses `rows.decode_rows`. Header names that are not UTF-8 come with U+FFFD in the
    place of the broken bytes.

    Raises:
        CorruptRecordError: wrong checksum (if `verify`) or wrong layout.
        UnpackLimitError: it is compressed and holds more than `limit_bytes` or `limit_records`.
    """
    view = memoryview(buffer)
    if end - start < _ENTRY_BYTES or end > view.nbytes:
        raise CorruptRecordError(f"a batch of {end - start} bytes is cut short")
    if view[start + 16] != 2:
        from penstock.records.legacy import decode_entry

        return decode_entry(
            view,
            start,
            end,
            topic,
            partition,
            verify=verify,
            limit_bytes=limit_bytes,
            limit_records=limit_records,
        )
    budget = UnpackBudget(limit_bytes, limit_records)
    header = _checked_header(view, start, end, verify, budget)
    data = bytes(records_bytes(view, start, end, header, budget))
    try:
        return decode_records(
            data,
            header.record_count,
            header.base_offset,
            header.base_timestamp,
            header.max_timestamp if header.attributes & LOG_APPEND_BIT else None,
            topic,
            partition,
        )
    except IndexError:
        raise CorruptRecordError(f"the records of batch {header.base_offset} are cut short") from None


def iter_records(
    buffer: Buffer,
    start: int,
    end: int,
    topic: str,
    partition: int,
    budget: UnpackBudget,
    *,
    verify: bool = True,
    chunk_records: int = CHUNK_RECORDS,
) -> Iterator[list[Record]]:
    """Yield what `decode_batch` returns in lists of at most `chunk_records`: few records exist at a time.

    Raises:
        CorruptRecordError: as `decode_batch`; records before what is wrong have been yielded.
        UnpackLimitError: it is compressed and holds more than `budget` allows.
    """
    view = memoryview(buffer)
    if end - start < _ENTRY_BYTES or end > view.nbytes:
        raise CorruptRecordError(f"a batch of {end - start} bytes is cut short")
    if view[start + 16] != 2:
        from penstock.records.legacy import iter_entry

        messages = iter_entry(view, start, end, topic, partition, budget, verify=verify)
        while some := list(islice(messages, chunk_records)):
            yield some
        return
    header = _checked_header(view, start, end, verify, budget)
    data = bytes(records_bytes(view, start, end, header, budget))
    appended_at = header.max_timestamp if header.attributes & LOG_APPEND_BIT else None
    position, left = 0, header.record_count
    while left:
        count = min(left, chunk_records)
        try:
            some, position = decode_some(
                data,
                position,
                count,
                header.base_offset,
                header.base_timestamp,
                appended_at,
                topic,
                partition,
            )
        except IndexError:
            raise CorruptRecordError(f"the records of batch {header.base_offset} are cut short") from None
        left -= count
        yield some
        if budget.pause is not None:
            budget.pause()
    if position != len(data):
        raise CorruptRecordError(f"{len(data) - position} bytes behind the last record")


def _checked_header(
    view: memoryview, start: int, end: int, verify: bool, budget: UnpackBudget
) -> BatchHeader:
    header = read_header(view, start)
    if header.size != end - start:
        raise CorruptRecordError(f"a batch of {header.size} bytes, {end - start} are given")
    if verify:
        verify_crc(view, start, end)
    if header.codec:
        budget.take_records(header.record_count)
    return header


# --- control batches ----------------------------------------------------------------------------------


def read_marker(buffer: Buffer, start: int, end: int) -> tuple[int, int]:
    """Return (type, coordinator epoch) of the control batch in `buffer[start:end]`.

    The type is `ABORT_MARKER`, `COMMIT_MARKER` or a number of KRaft's; the epoch is -1 where the
    type has none. Longer keys and values than today's are fine.

    Raises:
        CorruptRecordError: no control record, or one too short.
    """
    records = decode_batch(buffer, start, end, "", -1, verify=False)
    if not records:
        raise CorruptRecordError("a control batch without a record")
    key, value = records[0].key, records[0].value
    if key is None or len(key) < 4:
        raise CorruptRecordError("a control record whose key is too short")
    kind = _INT16.unpack_from(key, 2)[0]
    if kind not in (ABORT_MARKER, COMMIT_MARKER):
        return kind, -1
    if value is None or len(value) < 6:
        raise CorruptRecordError("a transaction marker whose value is too short")
    return kind, _INT32.unpack_from(value, 2)[0]


def encode_marker(
    kind: int,
    *,
    base_offset: int,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    timestamp: int,
    partition_leader_epoch: int = -1,
) -> bytes:
    """Write the control batch that ends a transaction (`ABORT_MARKER` or `COMMIT_MARKER`)."""
    return encode_batch(
        [(struct.pack(">hh", 0, kind), struct.pack(">hi", 0, coordinator_epoch), (), timestamp)],
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=True,
        is_control=True,
        partition_leader_epoch=partition_leader_epoch,
    )
