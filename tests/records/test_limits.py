"""Tests of the limits for decompressed data; memory use depends on the records that are returned."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import pytest

from column_rows import rows_of
from penstock.errors import CorruptRecordError, UnpackLimitError
from penstock.records import row_format, rows
from penstock.records.batch import decode_batch, encode_batch
from penstock.records.checking import walk_batch
from penstock.records.compression.codecs import (
    CHUNK_RECORDS,
    NESTING_MAX,
    CompressionCodec,
    UnpackBudget,
    compress,
    decompress,
)
from penstock.records.convert import convert_down, convert_up
from penstock.records.decode import decode_columns, iter_columns
from penstock.records.format.batch_header import read_header, split_batches
from penstock.records.legacy import encode_message, encode_message_set, flattened, read_message
from penstock.records.rows import decode_rows, iter_rows

CODECS = [CompressionCodec.GZIP, CompressionCodec.SNAPPY, CompressionCodec.LZ4, CompressionCodec.ZSTD]
MIB = 1 << 20


def tiny_records(count: int, codec: CompressionCodec = CompressionCodec.ZSTD, base_offset: int = 0) -> bytes:
    return encode_batch([(None, b"", (), 0)] * count, codec=codec, base_offset=base_offset)


def peak_bytes(action: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("codec", CODECS)
def test_no_codec_allocates_beyond_the_limit(codec: CompressionCodec) -> None:
    bomb = compress(codec, bytes(64 * MIB))

    def unpack() -> None:
        with pytest.raises(UnpackLimitError, match="longer than 1048576 bytes"):
            decompress(codec, bomb, MIB)

    # Snappy and gzip know before, the others fill a target of the limit's size.
    assert peak_bytes(unpack) < 3 * MIB


def test_gzip_that_lies_about_its_size_stops_at_the_limit() -> None:
    bomb = bytearray(compress(CompressionCodec.GZIP, bytes(64 * MIB)))
    bomb[-4:] = (1000).to_bytes(4, "little")

    def unpack() -> None:
        with pytest.raises(UnpackLimitError):
            decompress(CompressionCodec.GZIP, bomb, MIB)

    assert peak_bytes(unpack) < 3 * MIB


def test_a_zstd_frame_without_its_size_is_unpacked_up_to_the_limit() -> None:
    # A block of one repeated byte takes four bytes and says 128 KiB.
    block = ((128 << 10) << 3 | 1 << 1).to_bytes(3, "little") + b"x"
    last = ((128 << 10) << 3 | 1 << 1 | 1).to_bytes(3, "little") + b"x"
    bomb = bytes.fromhex("28b52ffd 00 58") + block * 500 + last
    assert decompress(CompressionCodec.ZSTD, bomb, 501 << 17) == b"x" * (501 << 17)
    with pytest.raises(UnpackLimitError):
        decompress(CompressionCodec.ZSTD, bomb, MIB)


@pytest.mark.parametrize("codec", CODECS)
def test_damage_is_no_limit(codec: CompressionCodec) -> None:
    data = bytearray(compress(codec, bytes(range(256)) * 50))
    data[len(data) // 2 :] = b"\xff" * (len(data) - len(data) // 2)
    with pytest.raises(CorruptRecordError) as caught:
        decompress(codec, data, MIB)
    assert not isinstance(caught.value, UnpackLimitError)


def test_a_budget_is_spent_by_everything_that_one_request_unpacks() -> None:
    budget = UnpackBudget(2500, 100)
    small = memoryview(compress(CompressionCodec.ZSTD, bytes(1000)))
    assert len(budget.unpack(CompressionCodec.ZSTD, small)) == 1000
    assert (
        len(budget.unpack(CompressionCodec.GZIP, memoryview(compress(CompressionCodec.GZIP, bytes(1000)))))
        == 1000
    )
    with pytest.raises(UnpackLimitError, match=r"more than 2500 bytes.*penstock\.unpack\.max\.bytes"):
        budget.unpack(CompressionCodec.ZSTD, small)
    budget.take_records(60)
    with pytest.raises(UnpackLimitError, match=r"more than 100 records.*penstock\.unpack\.max\.records"):
        budget.take_records(41)


# --- records --------------------------------------------------------------------------------------------


def test_more_records_than_the_limit_are_refused_before_one_is_read() -> None:
    batch = tiny_records(2000)
    with pytest.raises(UnpackLimitError, match="more than 1999 records"):
        decode_batch(batch, 0, len(batch), "t", 0, limit_records=1999)
    with pytest.raises(UnpackLimitError, match=r"offset 0: .*more than 1999.*penstock\.unpack\.max\.records"):
        decode_columns([batch], limit_records=1999)
    assert len(decode_batch(batch, 0, len(batch), "t", 0, limit_records=2000)) == 2000
    plain = tiny_records(2000, CompressionCodec.NONE)  # what is not compressed takes what it takes
    assert len(decode_batch(plain, 0, len(plain), "t", 0, limit_records=1)) == 2000
    assert decode_columns([plain], limit_records=1).row_count == 2000


@pytest.mark.parametrize("is_compiled", [True, False])
def test_rows_become_objects_some_at_a_time(is_compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    count = 100_000
    batch = tiny_records(count, base_offset=5) + tiny_records(10, base_offset=5 + count)
    if not is_compiled:
        monkeypatch.setattr(row_format, "_read_rows", None)
    pieces = list(iter_rows(batch, "t", 0))
    assert max(len(piece) for piece, _ in pieces) <= 2 * rows.CHUNK_ROWS
    assert [record.offset for piece, _ in pieces for record in piece] == list(range(5, 5 + count + 10))
    assert all(offset == piece[-1].offset + 1 for piece, offset in pieces if piece)
    assert pieces[-1][1] == 5 + count + 10
    assert decode_rows(batch, "t", 0) == ([each for piece, _ in pieces for each in piece], 5 + count + 10)
    # One piece is looked at, the others do not exist yet.
    assert peak_bytes(lambda: next(iter_rows(batch, "t", 0))) < 16 * MIB


def test_a_piece_of_compressed_batches_says_where_it_ends() -> None:
    """The end offset of one piece must not skip batches that belong to the next piece."""
    records = [(None, bytes(1000), (), 0)] * 300
    data = b"".join(
        encode_batch(records, base_offset=300 * n, codec=CompressionCodec.GZIP) for n in range(12)
    )
    pieces = list(iter_columns([data], batch_bytes=500_000))
    assert len(pieces) > 3
    next_offset = 0
    for piece in pieces:
        assert piece.offsets is not None
        assert piece.offsets[0] == next_offset
        assert piece.next_offset == piece.offsets[-1] + 1
        next_offset = piece.next_offset
    assert next_offset == 12 * 300


def test_rows_of_a_part_of_a_batch() -> None:
    records = [
        (b"k%d" % n if n % 3 else None, b"v" * (n % 7), [(f"h{i}", b"x") for i in range(n % 4)], n)
        for n in range(100)
    ]
    batch = encode_batch(records)
    whole = decode_batch(batch, 0, len(batch), "t", 0)
    assert rows_of(decode_columns([batch]), "t", 0) == whole
    for start, end in ((0, 33), (33, 100), (40, 41)):
        found, next_offset = decode_rows(batch, "t", 0, start_offset=start, end_offset=end)
        assert (found, next_offset) == (whole[start:end], end)


@pytest.mark.parametrize("codec", CODECS)
def test_many_small_bombs_are_no_large_piece(codec: CompressionCodec) -> None:
    bombs = b"".join(
        encode_batch([(None, bytes(MIB), (), 0)], codec=codec, base_offset=offset) for offset in range(40)
    )
    pieces = list(iter_columns([bombs], batch_bytes=2 * MIB))
    assert [offset for piece in pieces for offset in piece.offsets.tolist()] == list(range(40))
    assert max(piece.row_count for piece in pieces) <= 3
    # The limit is for each batch, not for what happens to be fetched together.
    assert sum(piece.row_count for piece in iter_columns([bombs], limit_bytes=2 * MIB)) == 40
    with pytest.raises(UnpackLimitError, match=r"offset 0: .*penstock\.unpack\.max\.bytes"):
        list(iter_columns([bombs], limit_bytes=MIB))


def test_a_walk_needs_no_objects_and_spends_the_budget() -> None:
    batch = encode_batch(
        [(b"k" if n % 2 else None, b"v", (), 1000 + n) for n in range(2500)], codec=CompressionCodec.LZ4
    )
    header = read_header(batch)
    chunks = list(walk_batch(batch, header, UnpackBudget()))
    assert [len(chunk.timestamps) for chunk in chunks] == [CHUNK_RECORDS, CHUNK_RECORDS, 500]
    assert [time for chunk in chunks for time in chunk.timestamps] == list(range(1000, 3500))
    assert [index for chunk in chunks for index in chunk.keyless] == list(range(0, 2500, 2))
    with pytest.raises(UnpackLimitError):
        list(walk_batch(batch, header, UnpackBudget(records_max=2000)))


# --- messages of magic 0 and 1 ------------------------------------------------------------------------------


def nested(
    depth: int, inner: bytes, codec: CompressionCodec = CompressionCodec.GZIP, magic: int = 0
) -> bytes:
    for _ in range(depth):
        last = list(split_batches(inner))[-1]
        offset = read_message(inner, last[0], last[1]).offset
        inner = encode_message(magic, offset, None, compress(codec, inner), 0, codec)
    return inner


def test_wrappers_in_wrappers_of_magic_0_are_read_everywhere() -> None:
    first = encode_message_set([(b"a", b"1", 0), (None, b"2", 0)], 0, offsets=[10, 11])
    second = encode_message_set([(b"b", None, 0)], 0, codec=CompressionCodec.SNAPPY, offsets=[12])
    data = nested(2, first + second) + encode_message(0, 13, b"c", b"3", 0)
    expected = [(10, b"a", b"1"), (11, None, b"2"), (12, b"b", None), (13, b"c", b"3")]
    by_row = [
        (record.offset, record.key, record.value)
        for start, end, _ in split_batches(data)
        for record in decode_batch(data, start, end, "t", 0)
    ]
    assert by_row == expected
    found = rows_of(decode_columns([data]), "t", 0)
    assert [(record.offset, record.key, record.value) for record in found] == expected
    assert [(record.offset, record.key, record.value) for record in decode_rows(data, "t", 0)[0]] == expected
    start, end, _ = next(iter(split_batches(data)))
    flat = flattened(read_message(data, start, end), UnpackBudget())
    assert [read_message(flat, *span[:2]).offset for span in split_batches(flat)] == [10, 11, 12]


def test_a_broker_of_their_age_takes_them_and_newer_ones_refuse() -> None:
    data = nested(3, encode_message_set([(b"a", b"1", 0), (b"b", b"2", 0)], 0))
    batch = convert_up(data, base_offset=100, nested=True)
    assert [(r.offset, r.key) for r in decode_batch(batch, 0, len(batch), "t", 0)] == [
        (100, b"a"),
        (101, b"b"),
    ]
    with pytest.raises(CorruptRecordError, match="holds a compressed one"):
        convert_up(data, base_offset=100)


def test_depth_has_a_limit() -> None:
    innermost = encode_message(0, 0, None, b"x", 0)
    deep = nested(NESTING_MAX, innermost)
    assert [record.value for record in decode_batch(deep, 0, len(deep), "t", 0)] == [b"x"]
    deeper = nested(NESTING_MAX + 1, innermost)
    with pytest.raises(UnpackLimitError, match="nested more than 16 deep"):
        decode_batch(deeper, 0, len(deeper), "t", 0)


def test_levels_share_one_budget() -> None:
    bomb = nested(4, encode_message(0, 0, None, bytes(10 * MIB), 0))
    assert len(bomb) < 1000
    with pytest.raises(UnpackLimitError):
        decode_batch(bomb, 0, len(bomb), "t", 0, limit_bytes=9 * MIB)
    with pytest.raises(UnpackLimitError, match="offset 0"):
        decode_columns([bomb], limit_bytes=9 * MIB)
    many = nested(2, encode_message_set([(None, b"", 0)] * 3000, 0))
    with pytest.raises(UnpackLimitError, match="records"):
        decode_batch(many, 0, len(many), "t", 0, limit_records=2999)


def test_conversion_ends_before_what_is_too_much_and_stops_when_there_is_enough() -> None:
    small = [encode_batch([(None, b"x" * 100, (), 0)], base_offset=offset) for offset in range(10)]
    one = convert_down(small[0], 1)
    assert convert_down(b"".join(small), 1, enough_bytes=len(one) + 1) == convert_down(b"".join(small[:2]), 1)
    bomb = encode_batch([(None, bytes(MIB), (), 0)], base_offset=10, codec=CompressionCodec.GZIP)
    budget = UnpackBudget(MIB // 2)
    assert convert_down(small[0] + bomb, 1, budget=budget) == one
    with pytest.raises(UnpackLimitError):
        convert_down(bomb, 1, budget=UnpackBudget(MIB // 2))
    many = tiny_records(3000, CompressionCodec.NONE)
    with pytest.raises(UnpackLimitError):
        convert_down(many, 1, budget=UnpackBudget(records_max=2999))


def test_conversion_makes_no_object_for_each_record() -> None:
    count = 60_000
    old = encode_message_set([(None, b"", 0)] * count, 1, codec=CompressionCodec.GZIP)
    assert peak_bytes(lambda: convert_up(old, base_offset=0)) < 24 * MIB
    new = tiny_records(count, CompressionCodec.GZIP)
    assert peak_bytes(lambda: convert_down(new, 1)) < 24 * MIB


def test_times_too_far_apart_for_one_batch_are_refused() -> None:
    data = encode_message_set([(None, b"", -(1 << 63)), (None, b"", (1 << 63) - 1)], 1)
    with pytest.raises(CorruptRecordError, match="too far apart"):
        convert_up(data)
