"""Tests that batches decoded to columns, with compiled or plain kernels, give the records of row decoding."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from penstock.errors import CorruptRecordError, DecodeError
from penstock.model import COLUMN_NAMES
from penstock.records import columns as column_module
from penstock.records import decode, growing
from penstock.records.batch import ABORT_MARKER, COMMIT_MARKER, decode_batch, encode_batch, encode_marker
from penstock.records.columns import RecordColumns
from penstock.records.compression.codecs import CompressionCodec
from penstock.records.decode import decode_columns, iter_columns
from penstock.records.format.batch_header import refresh_crc, set_max_timestamp_log_append, split_batches
from penstock.records.legacy import encode_message, encode_message_set
from penstock.records.row_format import RowLike

Row = tuple[int, int, int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]

pytestmark = pytest.mark.usefixtures("engine")


def rows_of(columns: RecordColumns) -> list[Row]:
    assert columns.offsets is not None
    assert columns.timestamps is not None
    assert columns.timestamp_types is not None
    assert columns.key is not None
    assert columns.value is not None
    assert columns.headers is not None
    return list(
        zip(
            columns.offsets.tolist(),
            columns.timestamps.tolist(),
            columns.timestamp_types.tolist(),
            columns.key.to_list(),
            columns.value.to_list(),
            columns.headers.to_list(),
            strict=True,
        )
    )


def expected_rows(data: bytes) -> list[Row]:
    return [
        (r.offset, r.timestamp, int(r.timestamp_type), r.key, r.value, list(r.headers))
        for start, end, _ in split_batches(data)
        for r in decode_batch(data, start, end, "t", 0)
    ]


def sample_rows(count: int, seed: int = 0) -> list[RowLike]:
    """Return records with nulls, empty and long values, and repeated header names."""
    rng = random.Random(seed)

    def content() -> bytes | None:
        size = rng.choice([-1, 0, 1, 20, 63, 64, 200, 9000 if rng.random() < 0.05 else 5])
        return None if size < 0 else rng.randbytes(size)

    return [
        (
            content(),
            content(),
            [
                (rng.choice(["", "id", "ce_type", "größe"]), content())
                for _ in range(rng.choice([0, 0, 1, 3, 70]))
            ],
            1_700_000_000_000 + rng.randint(-100_000, 100_000_000),
        )
        for _ in range(count)
    ]


def sample_log(codec: int = CompressionCodec.NONE, batches: int = 4, size: int = 15) -> bytes:
    return b"".join(
        encode_batch(sample_rows(size, seed=n), base_offset=100 + n * size, codec=codec)
        for n in range(batches)
    )


@pytest.mark.parametrize("codec", list(CompressionCodec))
def test_columns_hold_the_same_as_rows(codec: CompressionCodec) -> None:
    data = sample_log(codec)
    columns = decode_columns([data])
    assert rows_of(columns) == expected_rows(data)
    assert (columns.row_count, len(columns), columns.next_offset) == (60, 60, 160)


def test_all_magics_and_codecs_in_one_log() -> None:
    pieces = []
    offset = 0
    for magic in (0, 1, 2):
        for codec in CompressionCodec:
            if magic == 2:
                pieces.append(encode_batch(sample_rows(5, offset), base_offset=offset, codec=codec))
            elif codec != CompressionCodec.ZSTD:
                rows = [(key, value, time) for key, value, _, time in sample_rows(5, offset)]
                pieces.append(encode_message_set(rows, magic, codec=codec, offsets=range(offset, offset + 5)))
            offset += 5
    random.Random(3).shuffle(pieces)
    data = b"".join(pieces)
    assert rows_of(decode_columns([data])) == expected_rows(data)
    assert rows_of(decode_columns(pieces)) == expected_rows(data)


@pytest.mark.parametrize("group_bytes", [1, 500, 5000])
@pytest.mark.parametrize("codec", [CompressionCodec.NONE, CompressionCodec.LZ4, CompressionCodec.GZIP])
def test_groups_make_no_difference(
    codec: CompressionCodec, group_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = encode_message_set([(b"k", b"v" * n, 5) for n in range(40)], 1)
    data = old + sample_log(codec, batches=12, size=5) + sample_log(CompressionCodec.NONE, batches=2)
    expected = expected_rows(data)
    monkeypatch.setattr(decode, "GROUP_BYTES", group_bytes)
    decoder = decode._Decoder([data], COLUMN_NAMES, 0, None, (), True, 1 << 30, 1 << 30, group_bytes)
    assert len(list(decoder.steps())) > 3
    assert rows_of(decoder.finish()) == expected


@pytest.mark.parametrize("name", COLUMN_NAMES)
def test_only_the_columns_asked_for(name: str) -> None:
    data = sample_log()
    columns = decode_columns([data], columns=[name])
    full = decode_columns([data])
    assert columns.row_count == 60
    fields = {
        "key": "key",
        "value": "value",
        "offset": "offsets",
        "timestamp": "timestamps",
        "timestampType": "timestamp_types",
        "headers": "headers",
    }
    for column, field in fields.items():
        found = getattr(columns, field)
        if column != name:
            assert found is None
        elif isinstance(found, np.ndarray):
            assert found.tolist() == getattr(full, field).tolist()
        else:
            assert found.to_list() == getattr(full, field).to_list()


def test_no_bitmap_without_nulls() -> None:
    columns = decode_columns([encode_batch([(b"k", None, (), 0), (b"l", b"v", (), 0)])])
    assert columns.key is not None
    assert columns.value is not None
    assert columns.key.validity is None
    assert columns.value.validity is not None
    assert (columns.key.null_count, columns.value.null_count) == (0, 1)


@pytest.mark.parametrize("codec", [CompressionCodec.NONE, CompressionCodec.ZSTD])
@pytest.mark.parametrize(
    ("start", "end"), [(0, None), (100, 160), (107, 153), (115, 130), (159, 160), (160, None), (0, 100)]
)
def test_trimmed_to_the_range(start: int, end: int | None, codec: CompressionCodec) -> None:
    data = sample_log(codec)
    columns = decode_columns([data], start_offset=start, end_offset=end)
    stop = 160 if end is None else end
    assert [row[0] for row in rows_of(columns)] == list(range(max(start, 100), min(stop, 160)))
    assert columns.next_offset == max(start, min(stop, 160))


def test_range_in_old_messages() -> None:
    rows = [(None, b"%d" % n, 0) for n in range(10)]
    for codec in (CompressionCodec.NONE, CompressionCodec.GZIP):
        data = encode_message_set(rows, 1, codec=codec) + encode_message(1, 10, None, b"10", 0)
        columns = decode_columns([data], start_offset=4, end_offset=8)
        assert [row[0] for row in rows_of(columns)] == [4, 5, 6, 7]
        assert columns.next_offset == 8
        assert decode_columns([data], start_offset=10).next_offset == 11


def test_partial_batch_at_the_end_is_left_out() -> None:
    data = sample_log(batches=2)
    last = list(split_batches(data))[-1][0]
    for end in (last + 1, last + 16, last + 17, last + 60, len(data) - 1):
        columns = decode_columns([data[:end]])
        assert (columns.row_count, columns.next_offset) == (15, 115)
    old = encode_message_set([(None, b"x", 0)] * 3, 1)
    assert decode_columns([old[:-1]]).row_count == 2
    assert decode_columns([old[:20]]).row_count == 0


def test_nothing_in_gives_nothing_out() -> None:
    for buffers in ([], [b""], b"", [b"", b"\0" * 16]):
        columns = decode_columns(buffers, start_offset=7)
        assert (columns.row_count, columns.next_offset) == (0, 7)
        assert rows_of(columns) == []


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_will_do(kind: type) -> None:
    data = sample_log(batches=1)
    assert rows_of(decode_columns([kind(data)])) == expected_rows(data)
    assert rows_of(decode_columns(kind(data))) == expected_rows(data)
    assert rows_of(decode_columns([np.frombuffer(kind(data), dtype=np.uint8)])) == expected_rows(data)


def test_unknown_column() -> None:
    with pytest.raises(ValueError, match="no column is called nonsense"):
        decode_columns([b""], columns=["nonsense"])


def test_gaps_and_empty_batches_that_compaction_leaves() -> None:
    gappy = bytearray(
        encode_batch([(b"a", b"1", (), 5), (b"b", b"2", (), 6)], base_offset=10, offset_deltas=[2, 7])
    )
    struct.pack_into(">i", gappy, 23, 9)
    refresh_crc(gappy, 0, len(gappy))
    empty = bytearray(encode_batch([(None, None, (), 0)], base_offset=20, codec=CompressionCodec.LZ4)[:61])
    struct.pack_into(">i", empty, 8, 49)
    struct.pack_into(">i", empty, 23, 4)
    struct.pack_into(">i", empty, 57, 0)
    refresh_crc(empty, 0, len(empty))
    columns = decode_columns([bytes(gappy + empty)])
    assert [row[0] for row in rows_of(columns)] == [12, 17]
    assert columns.next_offset == 25


def test_numbers_of_every_length() -> None:
    deltas = [0, 63, 64, 8191, 8192, 1 << 20, (1 << 20) + 1, 1 << 27, 1 << 30, (1 << 31) - 1]
    rows: list[RowLike] = [(b"k", b"v", (), 1000 + (1 << 6 * n)) for n in range(len(deltas))]
    data = encode_batch(rows, base_offset=7, offset_deltas=deltas)
    found = rows_of(decode_columns([data]))
    assert found == expected_rows(data)
    assert [row[0] for row in found] == [7 + delta for delta in deltas]
    assert [row[1] for row in found] == [row[3] for row in rows]
    for size in (0, 63, 64, 8191, 8192, (1 << 20) - 1, 1 << 20):
        data = encode_batch([(b"k" * size, None, (), 0), (None, b"v" * size, (), 0)])
        assert rows_of(decode_columns([data])) == expected_rows(data)


@pytest.mark.parametrize("codec", [CompressionCodec.NONE, CompressionCodec.SNAPPY])
def test_log_append_time(codec: CompressionCodec) -> None:
    data = bytearray(encode_batch(sample_rows(5), codec=codec))
    set_max_timestamp_log_append(data, 0, len(data), 4242)
    assert {row[1:3] for row in rows_of(decode_columns([data]))} == {(4242, 1)}
    old = encode_message(1, 0, None, b"x", 99, attributes=8)
    assert [row[1:3] for row in rows_of(decode_columns([old]))] == [(99, 1)]


def test_extreme_timestamps_wrap_as_java_does() -> None:
    limits = [(1 << 63) - 1, 0, -1, -(1 << 63)]
    rows: list[RowLike] = [(None, None, (), time) for time in limits]
    for first in range(1, 4):
        data = encode_batch([rows[0], rows[first]]) if first < 3 else encode_batch([rows[2], rows[3]])
        assert rows_of(decode_columns([data])) == expected_rows(data)


# --- transactions ---


def transactional(offset: int, producer_id: int, count: int = 2, codec: int = CompressionCodec.NONE) -> bytes:
    return encode_batch(
        [(None, b"%d/%d" % (producer_id, offset + n), (), 0) for n in range(count)],
        base_offset=offset,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
        codec=codec,
    )


def marker(kind: int, offset: int, producer_id: int) -> bytes:
    return encode_marker(
        kind, base_offset=offset, producer_id=producer_id, producer_epoch=0, coordinator_epoch=0, timestamp=0
    )


def transactions(codec: int = CompressionCodec.NONE) -> bytes:
    return b"".join(
        (
            transactional(0, 1, codec=codec),  # aborted
            transactional(2, 2),  # committed
            encode_batch([(None, b"plain", (), 0)], base_offset=4),
            transactional(5, 1, codec=codec),  # aborted
            marker(ABORT_MARKER, 7, 1),
            transactional(8, 1),  # committed: a new transaction of the same producer
            marker(COMMIT_MARKER, 10, 2),
            marker(COMMIT_MARKER, 11, 1),
            transactional(12, 2, codec=codec),  # aborted
            marker(ABORT_MARKER, 14, 2),
        )
    )


ABORTED = [(2, 12), (1, 0)]


@pytest.mark.parametrize("codec", [CompressionCodec.NONE, CompressionCodec.LZ4])
def test_aborted_transactions_do_not_show(codec: CompressionCodec) -> None:
    data = transactions(codec)
    everything = decode_columns([data], columns=["offset"])
    assert everything.offsets is not None
    assert everything.offsets.tolist() == [0, 1, 2, 3, 4, 5, 6, 8, 9, 12, 13]  # but no control record
    committed = decode_columns([data], columns=["offset", "value"], aborted=ABORTED)
    assert committed.offsets is not None
    assert committed.offsets.tolist() == [2, 3, 4, 8, 9]
    assert committed.next_offset == 15


def test_a_marker_before_the_range_still_ends_its_transaction() -> None:
    columns = decode_columns([transactions()], columns=["offset"], aborted=ABORTED, start_offset=8)
    assert columns.offsets is not None
    assert columns.offsets.tolist() == [8, 9]


# --- pieces ---


@pytest.mark.parametrize("codec", [CompressionCodec.NONE, CompressionCodec.ZSTD])
def test_pieces_are_the_whole(codec: CompressionCodec) -> None:
    data = sample_log(codec, batches=20)
    pieces = list(iter_columns([data], batch_bytes=10_000, start_offset=104, end_offset=333))
    assert len(pieces) > 5
    assert all(piece.row_count for piece in pieces)
    assert list(chain.from_iterable(map(rows_of, pieces))) == [
        row for row in expected_rows(data) if 104 <= row[0] < 333
    ]
    assert [piece.next_offset for piece in pieces] == sorted({piece.next_offset for piece in pieces})
    assert pieces[-1].next_offset == 333
    assert list(iter_columns(iter([b""]))) == []


def test_pieces_remember_aborted_transactions() -> None:
    pieces = iter_columns([transactions()], columns=["offset"], aborted=ABORTED, batch_bytes=1)
    offsets = [piece.offsets.tolist() for piece in pieces if piece.offsets is not None]
    assert list(chain.from_iterable(offsets)) == [2, 3, 4, 8, 9]


def uneven_log(codec: CompressionCodec, magic: int = 2) -> bytes:
    """Return batches whose key and value sizes vary: null, empty, small or large."""
    shapes = [(-1, 3), (-1, 0), (900, -1), (0, 2_000), (5, 5), (-1, -1), (4_000, 4_000), (1, 70_000)]
    batches = []
    for number, (key_size, value_size) in enumerate(shapes * 2):
        key = None if key_size < 0 else b"k" * key_size
        value = None if value_size < 0 else b"v" * value_size
        rows: list[RowLike] = [(key, value, (), 7)] * (number % 3 + 1)
        if magic == 2:
            batches.append(encode_batch(rows, base_offset=10 * number, codec=codec))
        else:
            offsets = [10 * number + index for index in range(len(rows))]
            batches.append(encode_message_set([(key, value, 7)] * len(rows), 1, codec=codec, offsets=offsets))
    return b"".join(batches)


@pytest.mark.parametrize("group_bytes", [1, 5_000, decode.GROUP_BYTES])
@pytest.mark.parametrize("magic", [1, 2])
@pytest.mark.parametrize("codec", [CompressionCodec.NONE, CompressionCodec.GZIP])
def test_columns_grow_with_batches_unlike_those_before(
    codec: CompressionCodec, magic: int, group_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decode, "GROUP_BYTES", group_bytes)
    data = uneven_log(codec, magic)
    expected = expected_rows(data)
    assert rows_of(decode_columns([data])) == expected
    for batch_bytes in (1, 3_000, 100_000):
        pieces = list(iter_columns([data], batch_bytes=batch_bytes))
        assert list(chain.from_iterable(map(rows_of, pieces))) == expected
    keys = decode_columns([data], columns=["key"]).key
    values = decode_columns([data], columns=["value"], start_offset=35).value
    assert keys is not None
    assert keys.to_list() == [row[3] for row in expected]
    assert values is not None
    assert values.to_list() == [row[4] for row in expected if row[0] >= 35]


@pytest.mark.parametrize("codec", [CompressionCodec.NONE, CompressionCodec.LZ4])
@pytest.mark.parametrize("batch_bytes", [100_000, 10_000_000])
def test_what_is_decoded_is_not_copied_again_where_batches_are_alike(
    codec: CompressionCodec, batch_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decode, "GROUP_BYTES", 20_000)
    enlarged, cut = growing._enlarged, column_module.cut
    copied = []

    def counted_enlarged(array: NDArray[Any], used: int, size: int) -> NDArray[Any]:
        copied.append(used * array.itemsize)
        return enlarged(array, used, size)

    def counted_cut(array: NDArray[Any], size: int) -> NDArray[Any]:
        found = cut(array, size)
        if not np.shares_memory(found, array):
            copied.append(found.nbytes)
        return found

    monkeypatch.setattr(growing, "_enlarged", counted_enlarged)
    monkeypatch.setattr(growing, "cut", counted_cut)
    dice = random.Random(0)
    data = b"".join(
        encode_batch([(None, dice.randbytes(1_000), (), 7)] * 25, base_offset=25 * number, codec=codec)
        for number in range(15)
    )
    pieces = list(iter_columns([data], columns=["value", "offset"], batch_bytes=batch_bytes))
    assert sum(map(len, pieces)) == 375
    assert sum(copied) < 375_000 / 10


def test_old_messages_come_in_pieces_too() -> None:
    data = encode_message_set([(None, b"x" * 100, 0)] * 100, 1)
    assert [len(piece) for piece in iter_columns([data], batch_bytes=1000)] == [8] * 12 + [4]


# --- what must not happen ---


def outcome(buffers: Sequence[bytes | memoryview], **options: object) -> list[Row] | type[Exception]:
    try:
        return rows_of(decode_columns(buffers, verify_crcs=False, limit_bytes=100_000, **options))  # type: ignore[arg-type]
    except DecodeError as error:
        return type(error)


@settings(
    max_examples=120,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    codec=st.sampled_from([0, 0, 0, 1, 2, 3, 4]),
    magic=st.sampled_from([0, 1, 2, 2, 2]),
    changes=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), min_size=1, max_size=4),
    cut=st.integers(0, 30),
)
def test_damage_gives_records_or_the_one_error(
    codec: int, magic: int, changes: list[tuple[int, int]], cut: int
) -> None:
    if magic == 2:
        data = bytearray(
            encode_batch([(b"k", b"v" * 9, [("h", b"x")], 1000 + n) for n in range(7)], codec=codec)
        )
    else:
        data = bytearray(encode_message_set([(b"k", b"v" * 9, 1000)] * 7, magic, codec=codec % 4))
    for position, value in changes:
        data[position % len(data)] = value
    data = data[: len(data) - cut]
    found = outcome([bytes(data)])
    # What lies around the bytes makes no difference: nothing is read outside of them.
    for around in (b"\x00", b"\x7f", b"\xff"):
        padded = around * 64 + bytes(data) + around * 64
        assert outcome([memoryview(padded)[64 : 64 + len(data)]]) == found


@pytest.mark.parametrize("position", range(61, 90))
def test_every_value_of_every_byte_of_a_record(position: int) -> None:
    data = bytearray(encode_batch([(b"k", b"v" * 9, [("h", b"x")], 1000)] * 2))
    before = data[position]
    for value in range(0, 256, 5):
        data[position] = value
        outcome([bytes(data)])
    data[position] = before


def test_wrong_checksums() -> None:
    for data in (sample_log(), sample_log(CompressionCodec.LZ4), encode_message_set([(b"k", b"v", 0)], 1)):
        damaged = bytearray(data)
        damaged[-1] ^= 1
        with pytest.raises(CorruptRecordError, match="checksum"):
            decode_columns([damaged])


@pytest.mark.parametrize(
    ("layout", "position", "value"),
    [
        (">i", 8, 48),  # too short
        (">i", 57, -1),  # fewer than no records
        (">i", 57, 1 << 30),  # more than fit
        (">i", 57, 1),  # bytes behind the last record
        (">i", 57, 3),  # the bytes run out
        (">i", 23, -5),
        (">q", 0, -1),
        (">b", 16, 3),
    ],
)
def test_headers_that_contradict_the_records(layout: str, position: int, value: int) -> None:
    data = bytearray(encode_batch([(b"k", b"v" * 20, (), 1000)] * 2))
    struct.pack_into(layout, data, position, value)
    with pytest.raises(CorruptRecordError):
        decode_columns([data], verify_crcs=False)
    data = bytearray(encode_batch([(b"k", b"v" * 20, (), 1000)] * 2, codec=CompressionCodec.GZIP))
    struct.pack_into(layout, data, position, value)
    with pytest.raises(CorruptRecordError):
        decode_columns([data], verify_crcs=False)


def test_a_bomb_does_not_go_off() -> None:
    for codec in (
        CompressionCodec.GZIP,
        CompressionCodec.SNAPPY,
        CompressionCodec.LZ4,
        CompressionCodec.ZSTD,
    ):
        bomb = encode_batch([(None, bytes(3_000_000), (), 0)], codec=codec)
        with pytest.raises(CorruptRecordError):
            decode_columns([bomb], limit_bytes=100_000)
        with pytest.raises(CorruptRecordError):
            decode_columns([bomb, bomb], limit_bytes=5_000_000)  # the limit is for all of them together
        assert decode_columns([bomb, bomb], limit_bytes=6_100_000).row_count == 2


def test_a_column_beyond_what_arrow_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growing, "COLUMN_BYTES_MAX", 1000)
    data = [encode_batch([(None, b"x" * 300, (), 0)], base_offset=n) for n in range(4)]
    with pytest.raises(DecodeError, match="iter_columns"):
        decode_columns(data)
    assert sum(piece.row_count for piece in iter_columns(data, batch_bytes=300)) == 4


def test_header_names_that_are_not_utf8() -> None:
    rows: list[RowLike] = [
        (None, None, [("ab", b"1"), ("ü", b"2"), ("cd", None)], 0),
        (None, None, [("q", b"")], 0),
    ]
    data = bytearray(encode_batch(rows))
    assert rows_of(decode_columns([data], verify_crcs=False))[0][5] == list(rows[0][2])
    data[data.index(b"ab") + 1] = 0xC3  # begins a character that the next name would have to end
    found = decode_columns([data], verify_crcs=False)
    assert [row[5] for row in rows_of(found)] == [
        [("a\N{REPLACEMENT CHARACTER}", b"1"), ("ü", b"2"), ("cd", None)],
        [("q", b"")],
    ]
    assert found.headers is not None
    data = bytearray(encode_batch([(None, None, [("a", b""), ("b", b"")], 0)]))
    at = data.index(b"a")
    data[at], data[data.index(b"b", at)] = 0xC3, 0xBC  # valid only when put together
    names = rows_of(decode_columns([data], verify_crcs=False))[0][5]
    assert [name for name, _ in names] == ["\N{REPLACEMENT CHARACTER}"] * 2
