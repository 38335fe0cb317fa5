"""The header of a record batch of magic 2: its fields, bits and positions, and functions for them.

Only this module defines the positions and sizes of the header's fields: the kernels, the log, the broker's
validation and the client's producer import them from this module. The module imports nothing that is slow to
load.

Layout: protocol definition of KIP-98. All numbers are big-endian. The first 17 bytes (offset, length, and
a magic at position 16) are common to batches and to the messages of magic 0 and 1.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from penstock.errors import CorruptRecordError, EncodeError
from penstock.model import TimestampType
from penstock.records.format.crc import crc32c

if TYPE_CHECKING:
    from typing_extensions import Buffer

_HEADER = struct.Struct(">qiibIhiqqqhii")
unpack_header = _HEADER.unpack_from
"""Read the fields of `BatchHeader` from a buffer without checking any; `read_header` checks them."""

stamp_header = struct.Struct(">qii").pack_into
"""Write the first fields of a batch into a buffer: base offset, length field, partition leader epoch."""

_ENTRY = struct.Struct(">qi4xb")
_PRODUCER = struct.Struct(">qhi")
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")
_UINT32 = struct.Struct(">I")

LENGTH_POSITION = 8
LEADER_EPOCH_POSITION = 12
MAGIC_POSITION = 16
CRC_POSITION = 17
ATTRIBUTES_POSITION = 21
"""The position of the attributes in a batch. The checksum covers the bytes from there to the end of the
batch."""
LAST_OFFSET_DELTA_POSITION = 23
BASE_TIMESTAMP_POSITION = 27
MAX_TIMESTAMP_POSITION = 35
PRODUCER_ID_POSITION = 43
RECORD_COUNT_POSITION = 57

MESSAGE_CRC_POSITION = 12
"""The position of the checksum in a message of magic 0 or 1, which covers all bytes after the checksum."""
MESSAGE_ATTRIBUTES_POSITION = 17
MESSAGE_TIMESTAMP_POSITION = 18
"""The position of the timestamp in a message of magic 1; magic 0 has no timestamp."""
MESSAGE_LENGTH_MIN = 14
"""The minimum of the length field of a message of magic 0; for magic 1 the minimum is 8 higher."""

HEADER_BYTES = _HEADER.size
"""Size in bytes of a batch header, which precedes the first record: 61."""

LENGTH_EXTRA_BYTES = 12
"""Number of bytes of a batch, or of a message of magic 0 or 1, that its length field does not count."""

ENTRY_BYTES = _ENTRY.size
"""The size in bytes of the first fields, up to the magic, that batches and messages have in common: 17."""

LENGTH_MIN = {0: MESSAGE_LENGTH_MIN, 1: MESSAGE_LENGTH_MIN + 8, 2: HEADER_BYTES - LENGTH_EXTRA_BYTES}
"""The minimum of the length field of a batch or message, indexed with the magic."""

RECORD_BYTES_MIN = 7
"""The size of the smallest record in bytes: length, attributes, 2 deltas, 2 lengths and header count, with
1 byte each."""

CODEC_MASK = 0x07
LOG_APPEND_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40


class BatchHeader(NamedTuple):
    """The header of a record batch of magic 2, field by field as on the wire."""

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
        """The codec number (attribute bits 0-2). An unknown number is an error only when records are read."""
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
        """True if compaction has replaced the base timestamp by a delete horizon (KIP-534)."""
        return bool(self.attributes & DELETE_HORIZON_BIT)

    @property
    def size(self) -> int:
        """The size of the whole batch in bytes, header included."""
        return self.batch_length + LENGTH_EXTRA_BYTES

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """The sequence number of the last record, or -1 if the batch has no sequence numbers.

        The sequence number after 2^31 - 1 is 0.
        """
        if self.base_sequence < 0:
            return -1
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF


_new = tuple.__new__
"""A function that creates a `BatchHeader` from a tuple of its fields, without checking their number."""


def read_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """Read the header of the batch of magic 2 that begins at `position`.

    Raises:
        CorruptRecordError: the bytes are too few, the magic is not 2, or a count is impossible.
    """
    try:
        header = _new(BatchHeader, _HEADER.unpack_from(buffer, position))
    except struct.error:
        raise CorruptRecordError(
            f"a batch header needs {HEADER_BYTES} bytes behind position {position}"
        ) from None
    if header.magic != 2:
        raise CorruptRecordError(f"a batch of magic {header.magic} where magic 2 is due")
    if header.batch_length < LENGTH_MIN[2]:
        raise CorruptRecordError(f"a batch of length {header.batch_length}, the least is {LENGTH_MIN[2]}")
    if header.record_count < 0 or header.last_offset_delta < 0:
        raise CorruptRecordError(
            f"a batch with {header.record_count} records and last offset delta {header.last_offset_delta}"
        )
    return header


def split_batches(buffer: Buffer) -> Iterator[tuple[int, int, int]]:
    """Yield (start, end, magic) of every whole batch, or message of magic 0 or 1, in `buffer`.

    Stops without an error before a partial batch at the end, because a fetch response may end anywhere.

    Raises:
        CorruptRecordError: an unknown magic, or a length too small for it.
    """
    size = memoryview(buffer).nbytes
    start = 0
    unpack = _ENTRY.unpack_from
    while start + ENTRY_BYTES <= size:
        _, length, magic = unpack(buffer, start)
        if magic not in LENGTH_MIN or length < LENGTH_MIN[magic]:
            raise CorruptRecordError(f"a batch of magic {magic} and length {length} at position {start}")
        end = start + LENGTH_EXTRA_BYTES + length
        if end > size:
            return
        yield start, end, magic
        start = end


def verify_crc(buffer: Buffer, start: int, end: int) -> None:
    """Verify the checksum of the batch in `buffer[start:end]`.

    Raises:
        CorruptRecordError: the checksum does not match the bytes.
    """
    if end - start < HEADER_BYTES or start < 0 or end > memoryview(buffer).nbytes:
        raise CorruptRecordError(f"a batch of {end - start} bytes is cut short")
    expected = _UINT32.unpack_from(buffer, start + CRC_POSITION)[0]
    actual = crc32c(memoryview(buffer)[start + ATTRIBUTES_POSITION : end])
    if actual != expected:
        raise CorruptRecordError(
            f"the batch at position {start} has checksum {actual:#010x}, its header says {expected:#010x}"
        )


def set_base_offset(buffer: bytearray | memoryview, start: int, base_offset: int) -> None:
    """Write the base offset of the batch at `start`. The checksum does not cover it."""
    _INT64.pack_into(buffer, start, base_offset)


def set_leader_epoch(buffer: bytearray | memoryview, start: int, leader_epoch: int) -> None:
    """Write the partition leader epoch of the batch at `start`. The checksum does not cover it."""
    _INT32.pack_into(buffer, start + LEADER_EPOCH_POSITION, leader_epoch)


def set_max_timestamp_log_append(buffer: bytearray | memoryview, start: int, end: int, now_ms: int) -> None:
    """Set log-append time `now_ms` for all records of the batch, and write the new checksum."""
    attributes = _INT16.unpack_from(buffer, start + ATTRIBUTES_POSITION)[0]
    _INT16.pack_into(buffer, start + ATTRIBUTES_POSITION, attributes | LOG_APPEND_BIT)
    _INT64.pack_into(buffer, start + MAX_TIMESTAMP_POSITION, now_ms)
    refresh_crc(buffer, start, end)


def set_attributes(buffer: bytearray | memoryview, start: int, end: int, attributes: int) -> None:
    """Write the attributes of the batch and its new checksum."""
    _INT16.pack_into(buffer, start + ATTRIBUTES_POSITION, attributes)
    refresh_crc(buffer, start, end)


def set_max_timestamp(buffer: bytearray | memoryview, start: int, end: int, timestamp: int) -> None:
    """Write the greatest timestamp of the batch (milliseconds since 1970 UTC) and its new checksum."""
    _INT64.pack_into(buffer, start + MAX_TIMESTAMP_POSITION, timestamp)
    refresh_crc(buffer, start, end)


def set_producer(
    buffer: bytearray | memoryview,
    start: int,
    end: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    *,
    is_transactional: bool = False,
) -> None:
    """Write the producer id, producer epoch and base sequence of the batch, and its new checksum.

    With `is_transactional`, also set the transactional bit (attribute bit 4).
    """
    if is_transactional:
        buffer[start + ATTRIBUTES_POSITION + 1] |= TRANSACTIONAL_BIT
    _PRODUCER.pack_into(buffer, start + PRODUCER_ID_POSITION, producer_id, producer_epoch, base_sequence)
    refresh_crc(buffer, start, end)


def refresh_crc(buffer: bytearray | memoryview, start: int, end: int) -> None:
    """Compute the checksum of the batch from its bytes and write it into the header."""
    checksum = crc32c(memoryview(buffer)[start + ATTRIBUTES_POSITION : end])
    _UINT32.pack_into(buffer, start + CRC_POSITION, checksum)


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
    """Write the header, with a checksum of 0, into `batch`, before the records already in it.

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
