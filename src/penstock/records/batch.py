"""Encodes rows as record batches, decodes batches, and reads and writes control batches of transactions.

Guarantees: a reader never reads past the bytes that it was given, and any input gives a value or a
`DecodeError`. The module imports neither numpy nor anything else that is slow to load, since the broker and
the log use it. `decode` and `encode` convert columns.

Layout: protocol definition of KIP-98 (batch, see `batch_header`) and KIP-82 (headers); the varints inside
records are zig-zag. `legacy` reads messages of magic 0 and 1.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from penstock.errors import CorruptRecordError, EncodeError
from penstock.headers import Header
from penstock.model import Record, TimestampType
from penstock.records.compression.codecs import (
    CHUNK_RECORDS,
    UNPACKED_BYTES_MAX,
    UNPACKED_RECORDS_MAX,
    CompressionCodec,
    UnpackBudget,
    compress,
)
from penstock.records.format.batch_header import (
    CONTROL_BIT,
    ENTRY_BYTES,
    HEADER_BYTES,
    LOG_APPEND_BIT,
    MAGIC_POSITION,
    RECORD_BYTES_MIN,
    TRANSACTIONAL_BIT,
    BatchHeader,
    pack_header,
    read_header,
    refresh_crc,
    verify_crc,
)
from penstock.records.row_format import (
    PlainRowWriter,
    RowLike,
    decode_records,
    decode_some,
    encode_records,
    readable,
)

if TYPE_CHECKING:
    from typing_extensions import Buffer

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")

ABORT_MARKER, COMMIT_MARKER = 0, 1


def records_bytes(
    buffer: Buffer, start: int, end: int, header: BatchHeader, budget: UnpackBudget | None = None
) -> memoryview:
    """Return the encoded records of a batch as consecutive bytes, decompressed.

    Raises:
        CorruptRecordError: the records do not decompress, or have too few bytes for the header's count.
        UnpackLimitError: the records are compressed and take more bytes than `budget` allows.
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
    """Return an upper bound for the size in bytes of a record in an uncompressed batch."""
    size = 36 + (len(key) if key else 0) + (len(value) if value else 0)
    for name, content in headers:
        size += 10 + 3 * len(name) + (len(content) if content else 0)
    return size


def encode_batch(
    records: Sequence[RowLike],
    *,
    base_offset: int = 0,
    codec: int = CompressionCodec.NONE,
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
    """Encode rows as one batch of magic 2; return its bytes.

    `offset_deltas` are the offsets of the records after the base offset, ascending, possibly with gaps
    (default 0, 1, 2, ...); the last one becomes the last offset delta of the batch.

    Raises:
        EncodeError: there are no records, or a value has a wrong type or does not fit into its field.
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


def encode_written(
    writer: PlainRowWriter,
    *,
    codec: int = CompressionCodec.NONE,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    is_transactional: bool = False,
) -> bytearray:
    """Encode a `RowWriter`'s records as one batch of magic 2; the writer is unchanged.

    Raises:
        EncodeError: a value has a wrong type, or the codec's library is not installed.
    """
    try:
        if codec:
            compressed = compress(codec, writer.body(0))
            batch = bytearray(HEADER_BYTES + len(compressed))
            batch[HEADER_BYTES:] = compressed
        else:
            batch = writer.body(HEADER_BYTES)
        pack_header(
            batch,
            base_offset=0,
            partition_leader_epoch=-1,
            attributes=codec | (TRANSACTIONAL_BIT if is_transactional else 0),
            record_count=writer.count,
            base_timestamp=writer.base_timestamp,
            max_timestamp=writer.max_timestamp,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
        )
    except EncodeError:
        raise
    except (TypeError, ValueError, AttributeError) as error:
        raise EncodeError(f"a record cannot be written: {error}") from error
    refresh_crc(batch, 0, len(batch))
    return batch


# --- a batch to rows ----------------------------------------------------------------------------------


def decode_batch(
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
    """Decode the batch, or the message of magic 0 or 1, in `buffer[start:end]`; return its records.

    Control records are included: a caller that passes records to an application must check the batch header
    first, or use `rows.decode_rows`. In a record header's name that is not UTF-8, U+FFFD replaces invalid
    bytes.

    Raises:
        CorruptRecordError: wrong checksum (if `verify`) or wrong layout.
        UnpackLimitError: the batch is compressed and contains more than `limit_bytes` or `limit_records`.
    """
    view = memoryview(buffer)
    if end - start < ENTRY_BYTES or end > view.nbytes:
        raise CorruptRecordError(f"a batch of {end - start} bytes is cut short")
    if view[start + MAGIC_POSITION] != 2:
        from penstock.records.legacy import decode_entry  # few logs have messages before magic 2

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
    records = records_bytes(view, start, end, header, budget)
    try:
        return decode_records(
            records,
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
    record_class: type[Record] = Record,
) -> Iterator[list[Record]]:
    """Yield the same records as `decode_batch`, in lists of at most `chunk_records`, to limit memory.

    Raises:
        CorruptRecordError: as `decode_batch`; the records before the damage have been yielded.
        UnpackLimitError: the batch is compressed and contains more than `budget` allows.
    """
    view = memoryview(buffer)
    if end - start < ENTRY_BYTES or end > view.nbytes:
        raise CorruptRecordError(f"a batch of {end - start} bytes is cut short")
    if view[start + MAGIC_POSITION] != 2:
        from penstock.records.legacy import iter_entry

        messages = iter_entry(
            view, start, end, topic, partition, budget, verify=verify, record_class=record_class
        )
        while some := list(islice(messages, chunk_records)):
            yield some
        return
    header = _checked_header(view, start, end, verify, budget)
    data = readable(records_bytes(view, start, end, header, budget))
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
                record_class,
            )
        except IndexError:
            raise CorruptRecordError(f"the records of batch {header.base_offset} are cut short") from None
        left -= count
        yield some
        if budget.pause is not None:
            budget.pause()
    if position != len(data):
        raise CorruptRecordError(f"{len(data) - position} bytes behind the last record")


def rows_of_batch(
    view: memoryview,
    start: int,
    end: int,
    header: BatchHeader,
    topic: str,
    partition: int,
    verify: bool,
    record_class: type[Record],
) -> list[Record]:
    """Return the records of an uncompressed batch of magic 2 whose header has been read.

    Raises:
        CorruptRecordError: wrong checksum (if `verify`) or wrong layout.
    """
    if header.size != end - start:
        raise CorruptRecordError(f"a batch of {header.size} bytes, {end - start} are given")
    if verify:
        verify_crc(view, start, end)
    data = records_bytes(view, start, end, header)
    appended_at = header.max_timestamp if header.attributes & LOG_APPEND_BIT else None
    first, base_ms = header.base_offset, header.base_timestamp
    try:
        return decode_records(
            data, header.record_count, first, base_ms, appended_at, topic, partition, record_class
        )
    except IndexError:
        raise CorruptRecordError(f"the records of batch {first} are cut short") from None


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

    The type is `ABORT_MARKER`, `COMMIT_MARKER` or a control type of KRaft; the epoch is -1 for a type without
    an epoch. Both are -1 for a batch that compaction has emptied. Keys and values that are longer than
    today's formats are accepted.

    Raises:
        CorruptRecordError: the control record is too short.
    """
    records = decode_batch(buffer, start, end, "", -1, verify=False)
    if not records:
        return -1, -1
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
    """Encode the control batch that ends a transaction (`ABORT_MARKER` or `COMMIT_MARKER`)."""
    return encode_batch(
        [(struct.pack(">hh", 0, kind), struct.pack(">hi", 0, coordinator_epoch), (), timestamp)],
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=True,
        is_control=True,
        partition_leader_epoch=partition_leader_epoch,
    )
