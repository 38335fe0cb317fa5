"""Tests of decoding and encoding batches of magic 2: bytes written by hand, random records, and damage."""

from __future__ import annotations

import contextlib
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from for_each import for_each
from penstock.errors import CorruptRecordError, DecodeError, EncodeError
from penstock.model import Record, TimestampType
from penstock.records import batch as batches
from penstock.records.batch import (
    ABORT_MARKER,
    COMMIT_MARKER,
    decode_batch,
    encode_batch,
    encode_marker,
    read_marker,
    record_size_max,
)
from penstock.records.compression.codecs import CompressionCodec
from penstock.records.format.batch_header import (
    HEADER_BYTES,
    read_header,
    refresh_crc,
    set_base_offset,
    set_leader_epoch,
    set_max_timestamp_log_append,
    set_producer,
    split_batches,
    verify_crc,
)
from penstock.records.format.varint import encode_varint, read_varint

# Written down byte by byte from the format's tables; the checksum is a bit-by-bit CRC-32C's.
BY_HAND = bytes.fromhex(
    "0000000000000005"  # base offset 5
    "0000004d"  # 77 bytes follow
    "00000007"  # leader epoch
    "02"  # magic
    "4f1ae04f"  # checksum
    "0000"  # attributes
    "00000001"  # last offset delta
    "00000000000003e8"  # base timestamp 1000
    "00000000000003f2"  # max timestamp 1010
    "ffffffffffffffff"  # producer id
    "ffff"  # producer epoch
    "ffffffff"  # base sequence
    "00000002"  # records
    "20"  # 16 bytes: first record
    "00 00 00 02 6b 04 7631"  # attributes, deltas, key "k", value "v1"
    "04 02 68 02 78 02 68 01"  # headers: h = "x", h = null
    "14"  # 10 bytes: second record
    "00 14 02 01 01"  # deltas 10 and 1, key null, value null
    "02 04 c3a9 01"  # one header: "é" = null
)

BY_HAND_RECORDS = [
    Record("t", 3, 5, 1000, TimestampType.CREATE_TIME, b"k", b"v1", [("h", b"x"), ("h", None)]),
    Record("t", 3, 6, 1010, TimestampType.CREATE_TIME, None, None, [("é", None)]),
]


def by_hand() -> bytearray:
    return bytearray(BY_HAND)


binary = st.one_of(
    st.none(), st.binary(max_size=20), st.sampled_from([b"", b"v" * 63, b"v" * 64, b"v" * 8192])
)
names = st.text(st.characters(codec="utf-8"), max_size=8)
timestamps = st.one_of(
    st.integers(1_700_000_000_000, 1_700_000_100_000),
    st.sampled_from([-1, 0, 1, (1 << 63) - 1, -(1 << 63)]),
)
rows = st.tuples(binary, binary, st.lists(st.tuples(names, binary), max_size=3), timestamps)


def test_bytes_written_by_hand() -> None:
    data = by_hand()
    assert decode_batch(data, 0, len(data), "t", 3) == BY_HAND_RECORDS
    again = encode_batch(
        [(r.key, r.value, r.headers, r.timestamp) for r in BY_HAND_RECORDS],
        base_offset=5,
        partition_leader_epoch=7,
    )
    assert again == data
    header = read_header(data)
    assert header.size == len(data)
    assert (header.base_offset, header.last_offset, header.next_offset) == (5, 6, 7)
    assert (header.partition_leader_epoch, header.producer_id, header.last_sequence) == (7, -1, -1)
    assert not (header.is_transactional)
    assert not (header.is_control)
    assert not (header.has_delete_horizon)


@settings(max_examples=60, derandomize=True)
@given(records=st.lists(rows, min_size=1, max_size=8), codec=st.sampled_from(list(CompressionCodec)))
def test_round_trip(records: list[batches.RowLike], codec: CompressionCodec) -> None:
    low = min(record[3] for record in records)
    if max(record[3] for record in records) - low > (1 << 63) - 1:
        return  # the span itself is no 64-bit number
    data = encode_batch(records, base_offset=1 << 40, codec=codec)
    found = decode_batch(data, 0, len(data), "t", 0)
    assert [(r.key, r.value, list(r.headers), r.timestamp) for r in found] == records
    assert [r.offset - (1 << 40) for r in found] == list(range(len(records)))
    header = read_header(data)
    assert (header.codec, header.record_count, header.last_offset_delta) == (
        codec,
        len(records),
        len(records) - 1,
    )
    assert header.max_timestamp == max(record[3] for record in records)


@given(st.integers(-(1 << 63), (1 << 63) - 1))
@settings(max_examples=80, derandomize=True)
def test_varints_round_trip(number: int) -> None:
    data = encode_varint(number)
    assert read_varint(data, 0, 64) == (number, len(data))


SIZES_OF_NUMBERS = {
    1: (0, -1, 63, -64),
    2: (64, -65, 8191, -8192),
    3: (8192, -8193, 1048575, -1048576),
    4: (1048576, -1048577),
    5: (134217728, -134217729, 2147483647, -2147483648),
    10: ((1 << 63) - 1, -(1 << 63)),
}


@for_each([(number, size) for size, numbers in SIZES_OF_NUMBERS.items() for number in numbers])
def test_varint_sizes(number: int, size: int) -> None:
    assert len(encode_varint(number)) == size


@pytest.mark.parametrize("data", ["ffffffff1f", "8080808080 00", "ffffffffffffffffff02"])
def test_varints_that_run_on(data: str) -> None:
    with pytest.raises(CorruptRecordError):
        read_varint(bytes.fromhex(data), 0, 32)


def test_split_stops_at_a_partial_batch_and_refuses_nonsense() -> None:
    one = encode_batch([(None, b"x", (), 0)])
    for cut in range(1, len(one)):
        assert list(split_batches(one + one[:-cut])) == [(0, len(one), 2)]
    assert list(split_batches(one * 2)) == [(0, len(one), 2), (len(one), 2 * len(one), 2)]
    for position, value in ((16, 3), (8, 0xFF), (11, 40)):
        broken = bytearray(one)
        broken[position] = value
        if position == 11:
            broken[10] = 0
        with pytest.raises(CorruptRecordError):
            list(split_batches(broken))


def test_every_byte_is_guarded() -> None:
    data = by_hand()
    for position in range(len(data)):
        if position < 8 or 12 <= position < 16:  # base offset and leader epoch: a broker changes them
            continue
        damaged = bytearray(data)
        damaged[position] ^= 0x10
        with pytest.raises(DecodeError):
            decode_batch(damaged, 0, len(damaged), "t", 3)


def test_no_cut_is_mistaken_for_a_batch() -> None:
    data = by_hand()
    for end in range(len(data)):
        with pytest.raises(DecodeError):
            decode_batch(data, 0, end, "t", 3, verify=False)


@settings(max_examples=150, derandomize=True)
@given(
    changes=st.lists(st.tuples(st.integers(0, 200), st.integers(0, 255)), min_size=1, max_size=4),
    codec=st.sampled_from(list(CompressionCodec)),
)
def test_damage_behind_the_checksum(changes: list[tuple[int, int]], codec: CompressionCodec) -> None:
    data = bytearray(
        encode_batch([(b"k%d" % n, b"v" * n, [("h", b"x")], 1000 + n) for n in range(9)], codec=codec)
    )
    for position, value in changes:
        data[HEADER_BYTES - 4 + position % (len(data) - HEADER_BYTES + 4)] = value
    with contextlib.suppress(DecodeError):
        decode_batch(data, 0, len(data), "t", 0, verify=False, limit_bytes=10_000)


def test_counts_do_not_allocate() -> None:
    data = bytearray(encode_batch([(None, b"x", (), 0)]))
    struct.pack_into(">i", data, 57, 0x7FFFFFFF)
    with pytest.raises(CorruptRecordError, match="do not fit"):
        decode_batch(data, 0, len(data), "t", 0, verify=False)


def test_changes_in_place() -> None:
    data = bytearray(b"front" + encode_batch([(None, b"a", (), 10), (None, b"b", (), 20)]))
    start, end = 5, len(data)
    set_base_offset(data, start, 1 << 33)
    set_leader_epoch(data, start, 9)
    verify_crc(data, start, end)  # neither is covered
    set_producer(memoryview(data), start, end, 77, 3, 0x7FFFFFFF)
    verify_crc(data, start, end)
    header = read_header(data, start)
    assert header.base_offset == 1 << 33
    assert header.partition_leader_epoch == 9
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (77, 3, 0x7FFFFFFF)
    assert header.last_sequence == 0
    set_max_timestamp_log_append(data, start, end, 5_000)
    found = decode_batch(data, start, end, "t", 0)
    assert [(r.timestamp, r.timestamp_type) for r in found] == [(5_000, TimestampType.LOG_APPEND_TIME)] * 2
    data[end - 3] ^= 1
    with pytest.raises(CorruptRecordError, match="checksum"):
        verify_crc(data, start, end)
    refresh_crc(data, start, end)
    verify_crc(data, start, end)


def test_gaps_that_compaction_leaves() -> None:
    data = bytearray(
        encode_batch([(b"a", b"", (), 0), (b"b", b"", (), 0)], base_offset=100, offset_deltas=[3, 9])
    )
    struct.pack_into(">i", data, 23, 12)  # the last record was removed, its offset is still covered
    refresh_crc(data, 0, len(data))
    assert [r.offset for r in decode_batch(data, 0, len(data), "t", 0)] == [103, 109]
    assert read_header(data).next_offset == 113


def test_empty_batch() -> None:
    data = bytearray(encode_batch([(b"a", b"", (), 0)])[:HEADER_BYTES])
    struct.pack_into(">i", data, 8, len(data) - 12)
    struct.pack_into(">i", data, 57, 0)
    for codec in CompressionCodec:
        data[22] = codec
        refresh_crc(data, 0, len(data))
        assert decode_batch(data, 0, len(data), "t", 0) == []


def test_header_names_that_are_not_utf8() -> None:
    data = bytearray(encode_batch([(None, None, [("ab", b"x")], 0)]))
    data[data.index(b"ab")] = 0xFF
    refresh_crc(data, 0, len(data))
    assert decode_batch(data, 0, len(data), "t", 0)[0].headers == [("\N{REPLACEMENT CHARACTER}b", b"x")]


@pytest.mark.parametrize("kind", [ABORT_MARKER, COMMIT_MARKER])
def test_markers(kind: int) -> None:
    data = encode_marker(
        kind, base_offset=8, producer_id=7, producer_epoch=1, coordinator_epoch=3, timestamp=9
    )
    header = read_header(data)
    assert header.is_control
    assert header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 1, -1)
    assert read_marker(data, 0, len(data)) == (kind, 3)


def test_other_control_records() -> None:
    data = encode_batch([(b"\0\0\0\3 and more", None, (), 0)], is_control=True)
    assert read_marker(data, 0, len(data)) == (3, -1)
    for key, value in ((None, None), (b"\0\0", b""), (b"\0\0\0\0", b"\0\0")):
        broken = encode_batch([(key, value, (), 0)], is_control=True)
        with pytest.raises(CorruptRecordError):
            read_marker(broken, 0, len(broken))


def test_record_size_max_is_an_upper_bound() -> None:
    row = (b"k" * 100, b"v" * 9000, [("ü" * 50, b"x" * 70), ("n", None)], 5)
    assert len(encode_batch([row])) - HEADER_BYTES <= record_size_max(row[0], row[1], row[2])


@pytest.mark.parametrize(
    "records",
    [
        [],
        [("text", None, (), 0)],
        [(None, None, (), 1 << 63)],
        [(None, None, [("h", "text")], 0)],
        [(None, 5, (), 0)],
    ],
)
def test_what_cannot_be_written(records: list[batches.RowLike]) -> None:
    with pytest.raises(EncodeError):
        encode_batch(records)


def test_arguments_that_contradict_each_other_or_the_bytes() -> None:
    rows = [(None, b"x", (), 0)] * 2
    for deltas in ([], [0], [0, 1, 2]):
        with pytest.raises(EncodeError, match="offset deltas for 2 records"):
            encode_batch(rows, offset_deltas=deltas)
    batch = encode_batch(rows)
    for start, end in ((0, 10), (len(batch), len(batch) + 61), (-61, 0), (0, len(batch) + 1)):
        with pytest.raises(CorruptRecordError, match="cut short"):
            verify_crc(batch, start, end)


def test_unknown_codec() -> None:
    data = bytearray(encode_batch([(None, b"x", (), 0)]))
    data[22] = 6
    refresh_crc(data, 0, len(data))
    with pytest.raises(CorruptRecordError, match="codec 6"):
        decode_batch(data, 0, len(data), "t", 0)
    with pytest.raises(EncodeError, match="codec 6"):
        encode_batch([(None, b"x", (), 0)], codec=6)
