"""Tests of copying batches between logs: readers get the same records, in whole batches where possible."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from penstock.client.fetch.cursors import Cursor, FetchedPart
from penstock.errors import CorruptRecordError
from penstock.model import Record, TimestampType, TopicPartition
from penstock.records.batch import decode_batch, encode_batch
from penstock.records.compression.codecs import DEFAULT_LIMITS, CompressionCodec
from penstock.records.format.batch_header import HEADER_BYTES, read_header
from penstock.records.legacy import encode_message_set
from penstock.tables.batch_copies import batch_copies

TP = TopicPartition("t", 3)
NOW_MS = 1_700_000_000_000
ROWS = [(b"k", b"one", [("h", b"1")], 5), (None, b"two", [], 7), (b"", None, [("h", None)], 6)]


def copied(
    records: bytes, start: int = 0, aborted: Sequence[tuple[int, int]] = (), codec: int | None = None
) -> tuple[list[Any], int]:
    """Run `batch_copies` on fetched records; return the batches, and the offset at which it ends."""
    part = FetchedPart(Cursor(TP, start, None, 1), TP, memoryview(records), start, 0, aborted, 0)
    found = list(batch_copies(part, codec=codec, now_ms=NOW_MS, unpack=DEFAULT_LIMITS))
    return [copy.batch for copy in found if copy.batch is not None], found[-1].next_offset


def rows(batch: Any) -> list[tuple[Any, ...]]:
    assert batch.partition == 3
    found: list[Record] = decode_batch(batch.data, 0, len(batch.data), "t", 3)
    assert batch.record_count == len(found) == read_header(batch.data).last_offset_delta + 1
    return [(r.key, r.value, list(r.headers), r.timestamp) for r in found]


@pytest.mark.parametrize(
    "codec",
    [
        CompressionCodec.NONE,
        CompressionCodec.GZIP,
        CompressionCodec.SNAPPY,
        CompressionCodec.LZ4,
        CompressionCodec.ZSTD,
    ],
)
def test_a_batch_stays_as_it_is_but_for_producer_transaction_and_offset(codec: CompressionCodec) -> None:
    given = encode_batch(
        ROWS,
        base_offset=40,
        codec=codec,
        producer_id=9,
        producer_epoch=2,
        base_sequence=77,
        is_transactional=True,
        partition_leader_epoch=4,
    )
    (batch,), end = copied(given)
    assert end == 43
    assert bytes(batch.data[HEADER_BYTES:]) == given[HEADER_BYTES:]
    header = read_header(batch.data)
    assert (header.base_offset, header.partition_leader_epoch) == (0, -1)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (-1, -1, -1)
    assert header.attributes == codec
    assert rows(batch) == ROWS


def test_the_memory_of_a_batch_is_its_own() -> None:
    given = bytearray(encode_batch(ROWS))
    part = FetchedPart(Cursor(TP, 0, None, 1), TP, memoryview(given), 0, 0, (), 0)
    first, _ = batch_copies(part, codec=None, now_ms=NOW_MS, unpack=DEFAULT_LIMITS)
    given[:] = bytes(len(given))
    assert rows(first.batch) == ROWS


def test_what_the_start_cuts_off_is_not_copied() -> None:
    given = encode_batch(ROWS, base_offset=10) + encode_batch(ROWS, base_offset=13)
    batches, end = copied(given, start=11)
    assert [rows(batch) for batch in batches] == [ROWS[1:], ROWS]
    assert end == 16
    batches, _ = copied(given, start=13)
    assert [rows(batch) for batch in batches] == [ROWS]


def test_gaps_that_compaction_has_left_are_closed() -> None:
    (batch,), end = copied(
        encode_batch(ROWS, base_offset=5, codec=CompressionCodec.LZ4, offset_deltas=[0, 4, 9])
    )
    assert rows(batch) == ROWS
    assert read_header(batch.data).codec == CompressionCodec.LZ4
    assert end == 15


def test_the_time_of_the_broker_becomes_the_time_of_the_records() -> None:
    (batch,), _ = copied(encode_batch(ROWS, timestamp_type=TimestampType.LOG_APPEND_TIME))
    assert rows(batch) == [(*row[:3], 7) for row in ROWS]
    assert read_header(batch.data).timestamp_type is TimestampType.CREATE_TIME


def test_another_codec_is_taken_where_it_is_asked_for() -> None:
    (batch,), _ = copied(encode_batch(ROWS, codec=CompressionCodec.GZIP), codec=CompressionCodec.ZSTD)
    assert rows(batch) == ROWS
    assert read_header(batch.data).codec == CompressionCodec.ZSTD
    (batch,), _ = copied(encode_batch(ROWS, codec=CompressionCodec.GZIP), codec=CompressionCodec.NONE)
    assert read_header(batch.data).codec == CompressionCodec.NONE


def test_markers_and_aborted_transactions_are_left_out() -> None:
    def of(producer_id: int, offset: int, is_transactional: bool = True) -> bytes:
        return encode_batch(
            ROWS[:1], base_offset=offset, producer_id=producer_id, is_transactional=is_transactional
        )

    def marker(producer_id: int, offset: int, kind: int) -> bytes:
        key = bytes((0, 0, 0, kind))
        return encode_batch(
            [(key, bytes(6), [], 1)],
            base_offset=offset,
            producer_id=producer_id,
            is_transactional=True,
            is_control=True,
        )

    given = b"".join(
        (of(1, 0), of(2, 1), marker(1, 2, 0), of(1, 3), marker(2, 4, 1), marker(1, 5, 1), of(7, 6, False))
    )
    batches, end = copied(given, aborted=[(1, 0)])
    assert len(batches) == 3
    assert end == 7
    batches, end = copied(given[: -len(of(7, 6, False))], aborted=[(1, 0), (2, 1)])
    assert len(batches) == 1  # of the second transaction of 1, which is not aborted


@pytest.mark.parametrize(
    ("magic", "codec"), [(0, CompressionCodec.NONE), (1, CompressionCodec.NONE), (1, CompressionCodec.GZIP)]
)
def test_older_formats_are_written_anew(magic: int, codec: CompressionCodec) -> None:
    messages = [(b"k", b"one", 5), (None, b"two", 7)]
    batches, end = copied(encode_message_set(messages, magic, codec=codec))
    found = [row for batch in batches for row in rows(batch)]
    times = [5, 7] if magic else [NOW_MS, NOW_MS]
    assert found == [(b"k", b"one", [], times[0]), (None, b"two", [], times[1])]
    assert end == 2


def test_a_damaged_batch_is_not_given_a_new_checksum() -> None:
    good, bad = encode_batch(ROWS), bytearray(encode_batch(ROWS, base_offset=3))
    bad[-1] ^= 1
    part = FetchedPart(Cursor(TP, 0, None, 1), TP, memoryview(good + bytes(bad)), 0, 0, (), 0)
    found = batch_copies(part, codec=None, now_ms=NOW_MS, unpack=DEFAULT_LIMITS)
    assert rows(next(found).batch) == ROWS
    with pytest.raises(CorruptRecordError, match=r"t-3.*checksum"):
        next(found)
