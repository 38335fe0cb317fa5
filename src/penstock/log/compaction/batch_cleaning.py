"""Compact one batch: decide which of its records stay, and write the batch that holds them.

A record is removed if a later record has its key. A tombstone (a record without a value) is removed when
`delete.retention.ms` have passed since compaction first read it. The time of its removal, the *delete
horizon*, is stored in the batch (KIP-534). Offsets never change: a batch keeps its first and last offset when
records are removed from it. A batch without records is kept where readers need it: the last batch of a
producer carries its sequence numbers, the last batch of a segment shows where the segment ends.

A record whose offset lies outside its batch, or whose time is no 64-bit number, makes its whole batch
unreadable, because such an offset would remove other records. The caller then leaves the batch unchanged.

The caller decides what happens to batches of transactions and to markers (`transactions`). An entry of magic
0 or 1 is kept or removed as a whole. The module works on bytes, not on files.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from penstock.errors import CorruptRecordError
from penstock.log.compaction.transactions import BatchFate
from penstock.log.walk import BatchEntry
from penstock.model import Record
from penstock.records.batch import decode_batch, records_bytes
from penstock.records.compression.codecs import UnpackBudget, compress
from penstock.records.format.batch_header import (
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    HEADER_BYTES,
    LOG_APPEND_BIT,
    BatchHeader,
    pack_header,
    read_header,
    refresh_crc,
)
from penstock.records.format.key_scan import RecordSpan, scan_keys
from penstock.records.format.varint import encode_varint, read_unsigned
from penstock.records.kernels.key_scanner import Scanner

LatestOffsets = Mapping[bytes, int]
"""A dict from each key to the offset of its last record, in the part of the log that compaction has read."""

INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1


class WhenEmpty(Enum):
    """The treatment of a batch that loses all its records in compaction: dropped, or kept without records."""

    DROP = 0
    KEEP = 1


def keys_of(batch: bytes, entry: BatchEntry, scan: Scanner = scan_keys) -> list[tuple[bytes, int]]:
    """Return (key, offset) of every record with a key in a batch; return nothing for a control batch.

    Compaction removes earlier records that have one of these keys.

    Raises:
        CorruptRecordError: the records cannot be read.
    """
    if entry.magic < 2:
        return [(row.key, row.offset) for row in _rows(batch, entry) if row.key is not None]
    if entry.attributes & CONTROL_BIT:
        return []
    header = read_header(batch)
    return [
        (span.key, header.base_offset + span.offset_delta)
        for span in _spans(batch, header, scan)[1]
        if span.key is not None
    ]


def clean(
    batch: bytes,
    entry: BatchEntry,
    latest: LatestOffsets,
    *,
    up_to_offset: int,
    now_ms: int,
    delete_retention_ms: int,
    when_empty: WhenEmpty = WhenEmpty.DROP,
    fate: BatchFate = BatchFate.BY_KEY,
    scan: Scanner = scan_keys,
) -> bytes | None:
    """Compact a batch; return it unchanged or with fewer records, or return None to remove it.

    `latest` has the last offset of each key below `up_to_offset`; records at `up_to_offset` and later are
    kept.

    Raises:
        CorruptRecordError: the records cannot be read.
    """
    if entry.magic < 2:
        return batch if when_empty is WhenEmpty.KEEP or _is_needed(batch, entry, latest) else None
    header = read_header(batch)
    if fate is not BatchFate.BY_KEY:
        return _clean_whole(batch, header, fate, when_empty, now_ms, delete_retention_ms, scan)
    data, spans = _spans(batch, header, scan)
    base = header.base_offset
    horizon_passed = header.has_delete_horizon and now_ms >= header.base_timestamp
    kept = [
        span
        for span in spans
        if base + span.offset_delta >= up_to_offset
        or (
            span.key is not None
            and latest.get(span.key, -1) <= base + span.offset_delta
            and (span.has_value or not horizon_passed)
        )
    ]
    if not kept:
        if when_empty is WhenEmpty.DROP:
            return None
        return _emptied(header) if spans else batch
    if not header.has_delete_horizon and not all(span.has_value for span in kept):
        return _with_horizon(data, header, kept, min(now_ms + delete_retention_ms, INT64_MAX))
    if len(kept) == len(spans):
        return batch
    body = b"".join([data[span.start : span.end] for span in kept])
    latest_ms = header.base_timestamp + max(span.timestamp_delta for span in kept)
    return _rebuilt(header, body, len(kept), header.base_timestamp, latest_ms)


def _clean_whole(
    batch: bytes,
    header: BatchHeader,
    fate: BatchFate,
    when_empty: WhenEmpty,
    now_ms: int,
    delete_retention_ms: int,
    scan: Scanner,
) -> bytes | None:
    """Compact an aborted batch or a transaction marker; return the batch to keep, or None to remove it."""
    if fate is BatchFate.NEEDED:
        return batch
    if fate is BatchFate.SPENT and header.record_count:
        if not header.has_delete_horizon:
            data, spans = _spans(batch, header, scan)
            return _with_horizon(data, header, spans, min(now_ms + delete_retention_ms, INT64_MAX))
        if now_ms < header.base_timestamp:
            return batch
    if when_empty is WhenEmpty.DROP:
        return None
    return _emptied(header) if header.record_count else batch


def _spans(batch: bytes, header: BatchHeader, scan: Scanner) -> tuple[bytes, list[RecordSpan]]:
    """Decompress a batch of magic 2; return its records, and the byte range of each record.

    Raises:
        CorruptRecordError: the records cannot be read; or an offset lies outside the batch, or is not above
            the previous one; or a time is no 64-bit number.
        UnpackLimitError: the records take more memory than `UnpackBudget` allows by default.
    """
    budget = UnpackBudget()
    data = bytes(records_bytes(batch, 0, len(batch), header, budget))
    budget.take_records(header.record_count)
    spans = scan(data, header.record_count)
    previous, base_timestamp = -1, header.base_timestamp
    for span in spans:
        if not previous < span.offset_delta <= header.last_offset_delta:
            raise CorruptRecordError(
                f"a record with offset delta {span.offset_delta} after {previous}, in a batch whose last is "
                f"{header.last_offset_delta}"
            )
        previous = span.offset_delta
        if not INT64_MIN <= base_timestamp + span.timestamp_delta <= INT64_MAX:
            raise CorruptRecordError(
                f"a record with timestamp delta {span.timestamp_delta}, counted from {base_timestamp}"
            )
    return data, spans


def _is_needed(batch: bytes, entry: BatchEntry, latest: LatestOffsets) -> bool:
    """Return True if an entry of magic 0 or 1 has a message that is the last one with its key."""
    return any(row.key is not None and latest.get(row.key, -1) <= row.offset for row in _rows(batch, entry))


def _rows(batch: bytes, entry: BatchEntry) -> list[Record]:
    """Return the messages in an entry of magic 0 or 1, which may be a compressed wrapper.

    Raises:
        CorruptRecordError: the messages cannot be read, or an offset is past the entry's last offset.
    """
    rows = decode_batch(batch, 0, entry.size, "", -1, verify=False)
    for row in rows:
        if row.offset > entry.last_offset:
            raise CorruptRecordError(
                f"a message with offset {row.offset} in one that ends with {entry.last_offset}"
            )
    return rows


def _with_horizon(data: bytes, header: BatchHeader, kept: list[RecordSpan], horizon_ms: int) -> bytes:
    """Return a batch with the records `kept` and a delete horizon: the time to remove its tombstones.

    The horizon is stored as the base timestamp, so the records' timestamp deltas are computed again. All
    other bytes of a record are copied.

    Raises:
        CorruptRecordError: a record's time is too far from the horizon for a 64-bit number.
    """
    shift = header.base_timestamp - horizon_ms
    body = []
    for span in kept:
        delta = span.timestamp_delta + shift
        if not INT64_MIN <= delta <= INT64_MAX:
            raise CorruptRecordError(f"a record {-delta} ms from the horizon {horizon_ms}")
        _, position = read_unsigned(data, span.start)
        _, rest = read_unsigned(data, position + 1, 64)
        time = encode_varint(delta)
        body += [
            encode_varint(1 + len(time) + span.end - rest),
            data[position : position + 1],
            time,
            data[rest : span.end],
        ]
    latest_ms = header.base_timestamp + max(span.timestamp_delta for span in kept)
    return _rebuilt(header, b"".join(body), len(kept), horizon_ms, latest_ms, DELETE_HORIZON_BIT)


def _emptied(header: BatchHeader) -> bytes:
    """Return a batch without records, with the offsets and the producer fields of `header`."""
    return _rebuilt(header, b"", 0, header.max_timestamp, header.max_timestamp)


def _rebuilt(
    header: BatchHeader,
    body: bytes,
    count: int,
    base_timestamp: int,
    latest_ms: int,
    more_attributes: int = 0,
) -> bytes:
    """Return a batch with other records, but the offsets, producer, codec and timestamp type of `header`."""
    attributes = header.attributes | more_attributes
    if not count:
        attributes &= ~DELETE_HORIZON_BIT
    if header.codec and count:
        body = compress(header.codec, body)
    batch = bytearray(HEADER_BYTES + len(body))
    batch[HEADER_BYTES:] = body
    pack_header(
        batch,
        base_offset=header.base_offset,
        partition_leader_epoch=header.partition_leader_epoch,
        attributes=attributes,
        record_count=count,
        base_timestamp=base_timestamp,
        max_timestamp=header.max_timestamp if attributes & LOG_APPEND_BIT else latest_ms,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        last_offset_delta=header.last_offset_delta,
    )
    refresh_crc(batch, 0, len(batch))
    return bytes(batch)
