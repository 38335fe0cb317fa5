"""Prepare record batches for copying to another log: a batch is reused whole if possible, else re-encoded.

The copied batches contain the records that a consumer would read, in the same order, with their keys, values,
headers, timestamps and codec. Control batches, records of aborted transactions, and records before the start
offset are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from penstock.client.fetch.cursors import FetchedPart
from penstock.client.produce.encoded import EncodedBatch
from penstock.errors import CorruptRecordError, UnpackLimitError
from penstock.records.aborted import AbortedTransactions
from penstock.records.batch import ABORT_MARKER, encode_batch, iter_records, read_marker
from penstock.records.compression.codecs import UnpackBudget, UnpackLimits, naming_place
from penstock.records.format.batch_header import (
    ATTRIBUTES_POSITION,
    CODEC_MASK,
    LOG_APPEND_BIT,
    BatchHeader,
    read_header,
    set_base_offset,
    set_leader_epoch,
    set_producer,
    split_batches,
    verify_crc,
)
from penstock.records.legacy import read_message

ROWS_MAX = 10_000
"""Most records that exist as Python objects at a time while a batch is encoded anew."""


class BatchCopy(NamedTuple):
    """A batch to send (None if there is nothing to copy), and the source offset at which to continue.

    `spans` are the source offsets of the batch's records, ascending, as (first offset, count of offsets).
    """

    batch: EncodedBatch | None
    next_offset: int
    spans: Sequence[tuple[int, int]] = ()


def batch_copies(
    part: FetchedPart,
    *,
    codec: int | None,
    now_ms: int,
    unpack: UnpackLimits,
    keep_offsets: bool = False,
) -> Iterator[BatchCopy]:
    """Yield copies of the batches in a fetched part of a partition, ready for a producer.

    A `codec` of None keeps that of each batch. Records without a timestamp (magic 0) get `now_ms`. A batch is
    encoded anew if the part begins within it, compaction has left gaps in it, its records have the
    log-append time of the source's broker, it has another codec than `codec`, or it has an older format.

    With `keep_offsets`, batches have the offsets of the source, with the gaps of compaction;
    without, the offsets of each batch begin at 0 and have no gaps.

    Raises:
        CorruptRecordError: a batch is damaged; those before it were yielded.
        UnpackLimitError: a compressed batch that must be encoded anew decompresses to more than `unpack`
            allows.
    """
    try:
        with naming_place(part.tp):
            yield from _copies(part, codec, now_ms, unpack, keep_offsets)
    except UnpackLimitError:
        raise
    except CorruptRecordError as error:
        raise CorruptRecordError(f"{part.tp}, behind offset {part.start}: {error}") from None


def _copies(
    part: FetchedPart, codec: int | None, now_ms: int, unpack: UnpackLimits, keep_offsets: bool
) -> Iterator[BatchCopy]:
    view = part.records
    transactions = AbortedTransactions(part.aborted) if part.aborted else None
    next_offset = part.start
    for start, end, magic in split_batches(view):
        if magic == 2:
            header = read_header(view, start)
            verify_crc(view, start, end)
            next_offset = max(next_offset, header.next_offset)
            if _is_left_out(view, start, end, header, transactions) or next_offset <= part.start:
                continue
            if _may_stay_whole(header, part.start, codec, keep_offsets):
                base_offset = header.base_offset if keep_offsets else 0
                batch = _whole(view, start, end, header, part.tp.partition, base_offset)
                spans = () if keep_offsets else ((header.base_offset, header.record_count),)
                yield BatchCopy(batch, next_offset, spans)
                continue
            found_codec = header.codec
        else:
            message = read_message(view, start, end)
            next_offset = max(next_offset, message.offset + 1)
            if message.offset < part.start:
                continue
            found_codec = message.codec
        used = found_codec if codec is None else codec
        yield from _written_anew(part, start, end, used, now_ms, unpack, keep_offsets)
    yield BatchCopy(None, max(next_offset, part.next_offset))


def _is_left_out(
    view: memoryview, start: int, end: int, header: BatchHeader, transactions: AbortedTransactions | None
) -> bool:
    """Return True if a batch is not copied: a control batch, or one of an aborted transaction."""
    if header.is_control:
        if (
            transactions is not None
            and header.is_transactional
            and read_marker(view, start, end)[0] == ABORT_MARKER
        ):
            transactions.end_transaction(header.producer_id, header.last_offset)
        return True
    if transactions is None or not header.is_transactional:
        return False
    return transactions.is_aborted(header.producer_id, header.last_offset)


def _may_stay_whole(header: BatchHeader, start: int, codec: int | None, keep_offsets: bool) -> bool:
    return (
        header.base_offset >= start
        and (keep_offsets or header.record_count == header.last_offset_delta + 1)
        and header.record_count > 0
        and not header.attributes & LOG_APPEND_BIT
        and not header.has_delete_horizon
        and min(header.base_timestamp, header.max_timestamp) >= 0
        and codec in (None, header.codec)
    )


def _whole(
    view: memoryview, start: int, end: int, header: BatchHeader, partition: int, base_offset: int
) -> EncodedBatch:
    """Return a copy of the batch with another base offset, and without producer id and transactional bit."""
    data = bytearray(view[start:end])
    data[ATTRIBUTES_POSITION : ATTRIBUTES_POSITION + 2] = bytes((0, header.attributes & CODEC_MASK))
    set_base_offset(data, 0, base_offset)
    set_leader_epoch(data, 0, -1)
    set_producer(data, 0, len(data), -1, -1, -1)
    return EncodedBatch(partition, memoryview(data), header.record_count)


def _written_anew(
    part: FetchedPart,
    start: int,
    end: int,
    codec: int,
    now_ms: int,
    unpack: UnpackLimits,
    keep_offsets: bool,
) -> Iterator[BatchCopy]:
    budget = UnpackBudget(unpack.max_bytes, unpack.max_records)
    for records in iter_records(
        part.records, start, end, *part.tp, budget, verify=True, chunk_records=ROWS_MAX
    ):
        kept = [r for r in records if r.offset >= part.start]
        if not kept:
            continue
        rows = [(r.key, r.value, r.headers, r.timestamp if r.timestamp >= 0 else now_ms) for r in kept]
        first = kept[0].offset
        if keep_offsets:
            deltas = [r.offset - first for r in kept]
            encoded = encode_batch(rows, base_offset=first, offset_deltas=deltas, codec=codec)
        else:
            encoded = encode_batch(rows, codec=codec)
        batch = EncodedBatch(part.tp.partition, memoryview(bytearray(encoded)), len(rows))
        spans = () if keep_offsets else _spans(r.offset for r in kept)
        yield BatchCopy(batch, records[-1].offset + 1, spans)


def _spans(offsets: Iterable[int]) -> list[tuple[int, int]]:
    """Group ascending offsets into spans: (first offset, count of consecutive offsets)."""
    spans: list[tuple[int, int]] = []
    for offset in offsets:
        if spans and offset == sum(spans[-1]):
            spans[-1] = (spans[-1][0], spans[-1][1] + 1)
        else:
            spans.append((offset, 1))
    return spans
