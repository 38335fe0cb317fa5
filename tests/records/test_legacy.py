"""Tests of messages of magic 0 and 1, and of conversions between magic 0, 1 and 2."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from for_each import for_each
from penstock.errors import CorruptRecordError, DecodeError, EncodeError, UnsupportedVersionError
from penstock.model import NO_TIMESTAMP, TimestampType
from penstock.records import message_loops
from penstock.records.batch import decode_batch, encode_batch, encode_marker
from penstock.records.compression import gzip
from penstock.records.compression.codecs import CompressionCodec, compress
from penstock.records.convert import convert_down, convert_up
from penstock.records.decode import decode_columns
from penstock.records.format.batch_header import read_header, set_max_timestamp_log_append, split_batches
from penstock.records.legacy import encode_message, encode_message_set, read_message

OLD_CODECS = [CompressionCodec.NONE, CompressionCodec.GZIP, CompressionCodec.SNAPPY, CompressionCodec.LZ4]
ROWS = [(b"k", b"v", 1000), (None, b"", 900), (b"", None, 1100), (b"x" * 300, b"y" * 70_000, 1050)]

MAGIC_0 = bytes.fromhex("000000000000002a 00000010 00000000 00 00 00000001 6b 00000001 76")
MAGIC_1 = bytes.fromhex("000000000000002a 00000018 00000000 01 08 00000000000003e8 00000001 6b ffffffff")


def with_crc(message: bytes) -> bytes:
    """Return one message with its size and CRC filled in."""
    size = (len(message) - 12).to_bytes(4, "big")
    return message[:8] + size + zlib.crc32(message[16:]).to_bytes(4, "big") + message[16:]


def decode_all(data: bytes) -> list[tuple[int, int, int, bytes | None, bytes | None]]:
    return [
        (record.offset, record.timestamp, int(record.timestamp_type), record.key, record.value)
        for start, end, _ in split_batches(data)
        for record in decode_batch(data, start, end, "t", 0)
    ]


def test_bytes_written_by_hand() -> None:
    assert decode_all(with_crc(MAGIC_0)) == [(42, -1, -1, b"k", b"v")]
    assert decode_all(with_crc(MAGIC_1)) == [(42, 1000, 1, b"k", None)]
    assert encode_message(0, 42, b"k", b"v", 5) == with_crc(MAGIC_0)
    assert encode_message(1, 42, b"k", None, 1000, attributes=8) == with_crc(MAGIC_1)


@pytest.mark.parametrize("codec", OLD_CODECS)
@pytest.mark.parametrize("magic", [0, 1])
def test_round_trip(magic: int, codec: CompressionCodec) -> None:
    data = encode_message_set(ROWS, magic, codec=codec, offsets=[10, 11, 15, 16])
    times = [time if magic else NO_TIMESTAMP for _, _, time in ROWS]
    kind = TimestampType.CREATE_TIME if magic else TimestampType.NONE
    assert decode_all(data) == [
        (offset, time, kind, key, value)
        for offset, time, (key, value, _) in zip([10, 11, 15, 16], times, ROWS, strict=True)
    ]
    assert len(list(split_batches(data))) == (1 if codec else 4)


def test_wrapper_of_magic_1_as_the_format_has_it() -> None:
    data = encode_message_set(ROWS, 1, codec=CompressionCodec.GZIP, offsets=[10, 11, 15, 16])
    wrapper = read_message(data, 0, len(data))
    assert wrapper.offset == 16
    assert wrapper.timestamp == 1100
    assert wrapper.key is None
    appended = encode_message_set(
        ROWS, 1, codec=CompressionCodec.GZIP, timestamp_type=TimestampType.LOG_APPEND_TIME
    )
    assert {(time, kind) for _, time, kind, _, _ in decode_all(appended)} == {(1100, 1)}


def test_offsets_inside_a_wrapper() -> None:
    def wrapped(magic: int, inner: list[int], outer: int) -> list[int]:
        content = b"".join(encode_message(magic, offset, None, b"x", 0) for offset in inner)
        data = encode_message(
            magic, outer, None, compress(CompressionCodec.GZIP, content), 0, CompressionCodec.GZIP
        )
        return [row[0] for row in decode_all(data)]

    assert wrapped(0, [40, 41, 42], 42) == [40, 41, 42]  # absolute
    assert wrapped(1, [0, 1, 2], 42) == [40, 41, 42]  # relative to the last
    assert wrapped(1, [0, 5], 42) == [37, 42]  # gaps, after compaction
    assert wrapped(1, [0, 1, 2], 0) == [0, 1, 2]  # a producer that leaves the wrapper's out


def test_lz4_checksum_of_magic_0_is_the_broken_one() -> None:
    for magic, checksum in ((0, 0x1A), (1, 0x82)):
        data = encode_message_set(ROWS, magic, codec=CompressionCodec.LZ4)
        value = read_message(data, 0, len(data)).value
        assert value is not None
        assert value[6] == checksum


def wrap(magic: int, codec: int, content: bytes | None, compressed_with: int | None = None) -> bytes:
    value = (
        None if content is None else compress(codec if compressed_with is None else compressed_with, content)
    )
    return encode_message(magic, 9, None, value, 0, codec)


@for_each(
    [
        wrap(1, CompressionCodec.GZIP, None),
        wrap(1, CompressionCodec.GZIP, b""),
        wrap(1, CompressionCodec.GZIP, b"x" * 40),
        wrap(1, CompressionCodec.GZIP, encode_message(0, 0, None, None, 0)),  # another magic inside
        wrap(0, CompressionCodec.GZIP, encode_message(1, 0, None, None, 0)),
        wrap(
            1, CompressionCodec.GZIP, wrap(1, CompressionCodec.GZIP, encode_message(1, 0, None, None, 0))
        ),  # two levels
        wrap(1, CompressionCodec.GZIP, encode_message(1, 0, None, None, 0) + b"partial"),
        wrap(1, CompressionCodec.ZSTD, encode_message(1, 0, None, None, 0)),
        wrap(
            1,
            CompressionCodec.GZIP,
            encode_message(1, 0, None, None, 0),
            compressed_with=CompressionCodec.SNAPPY,
        ),
        with_crc(MAGIC_0[:-1] + b"vv"),
        with_crc(MAGIC_0)[:-2] + b"zz",
    ]
)
def test_corrupt_sets(data: bytes) -> None:
    with pytest.raises(CorruptRecordError):
        decode_all(data)


def test_a_bomb_does_not_go_off() -> None:
    content = encode_message(1, 0, None, bytes(10_000_000), 0)
    data = wrap(1, CompressionCodec.GZIP, content)
    with pytest.raises(CorruptRecordError):
        decode_batch(data, 0, len(data), "t", 0, limit_bytes=100_000)


@settings(max_examples=100, derandomize=True)
@given(
    magic=st.sampled_from([0, 1]),
    codec=st.sampled_from(OLD_CODECS),
    changes=st.lists(st.tuples(st.integers(0, 300), st.integers(0, 255)), min_size=1, max_size=4),
)
def test_damage_behind_the_checksum(
    magic: int, codec: CompressionCodec, changes: list[tuple[int, int]]
) -> None:
    data = bytearray(encode_message_set([(b"k", b"v" * 9, 5)] * 4, magic, codec=codec))
    for position, value in changes:
        data[position % len(data)] = value
    try:
        for start, end, _ in split_batches(data):
            decode_batch(data, start, end, "t", 0, verify=False, limit_bytes=10_000)
    except DecodeError:
        pass


def test_what_cannot_be_written() -> None:
    with pytest.raises(EncodeError):
        encode_message_set([], 1)
    with pytest.raises(EncodeError, match="zstd"):
        encode_message_set(ROWS, 1, codec=CompressionCodec.ZSTD)
    with pytest.raises(EncodeError, match="magic"):
        encode_message_set(ROWS, 2)
    with pytest.raises(EncodeError):
        encode_message(1, 0, None, b"", 1 << 63)


# --- conversion ---

NEW_ROWS = [(key, value, [("h", b"x")], time) for key, value, time in ROWS]


@pytest.mark.parametrize("codec", OLD_CODECS)
def test_down_and_up_again(codec: CompressionCodec) -> None:
    batch = encode_batch(NEW_ROWS, base_offset=50, codec=codec)
    one = convert_down(batch, 1)
    assert decode_all(one) == [(50 + n, time, 0, key, value) for n, (key, value, time) in enumerate(ROWS)]
    assert {(magic, data[17] & 7) for data, magic in entries(one)} == {(1, codec)}
    zero = convert_down(batch, 0)
    assert decode_all(zero) == [(50 + n, -1, -1, key, value) for n, (key, value, _) in enumerate(ROWS)]
    assert convert_down(one, 0) == zero
    assert convert_down(zero, 1) == zero  # older than asked for is fine
    back = convert_up(one)
    header = read_header(back)
    assert (header.base_offset, header.last_offset, header.codec) == (50, 53, codec)
    assert decode_all(back) == [(50 + n, time, 0, key, value) for n, (key, value, time) in enumerate(ROWS)]
    stamped = convert_up(zero, base_offset=7, codec=CompressionCodec.ZSTD, timestamp_ms=123)
    assert decode_all(stamped) == [(7 + n, 123, 0, key, value) for n, (key, value, _) in enumerate(ROWS)]


def entries(data: bytes) -> list[tuple[bytes, int]]:
    return [(data[start:end], magic) for start, end, magic in split_batches(data)]


def test_down_leaves_out_what_old_clients_must_not_see() -> None:
    plain = encode_batch(NEW_ROWS, base_offset=10)
    packed = encode_batch(NEW_ROWS, base_offset=14, codec=CompressionCodec.GZIP)
    marker = encode_marker(
        0, base_offset=18, producer_id=1, producer_epoch=0, coordinator_epoch=0, timestamp=0
    )
    found = decode_all(convert_down(plain + packed + marker, 1, first_offset=13))
    assert [row[0] for row in found] == [13, 14, 15, 16, 17]
    assert convert_down(marker, 1) == b""
    with pytest.raises(UnsupportedVersionError, match="zstd"):
        convert_down(encode_batch(NEW_ROWS, codec=CompressionCodec.ZSTD), 1)


def test_log_append_time_survives() -> None:
    batch = bytearray(encode_batch(NEW_ROWS))
    set_max_timestamp_log_append(batch, 0, len(batch), 7777)
    one = convert_down(batch, 1)
    assert {row[1:3] for row in decode_all(one)} == {(7777, 1)}
    assert {row[1:3] for row in decode_all(convert_up(one))} == {(7777, 1)}


def test_up_refuses_what_is_no_message_set() -> None:
    one = encode_message(1, 0, None, b"x", 0)
    for data in (b"", one + one[:20], one + encode_batch(NEW_ROWS), one + one):  # the last: offsets repeat
        with pytest.raises(CorruptRecordError):
            convert_up(data)
    assert len(decode_all(convert_up(one + one, base_offset=0))) == 2


def damaged_inside(magic: int, codec: CompressionCodec, depth: int = 1) -> bytes:
    """Return a compressed message with a correct CRC around a message with a wrong CRC."""
    good = encode_message(magic, 0, b"k", b"good", 0)
    entry = encode_message(magic, 0, b"k", b"good", 0) + good[:-4] + b"evil"
    for _ in range(depth):
        entry = encode_message(magic, 1, None, compress(codec, entry), 0, codec)
    return entry


@pytest.mark.parametrize(
    ("magic", "codec", "depth"),
    [(magic, codec, 1) for magic in (0, 1) for codec in OLD_CODECS if codec]
    + [(0, CompressionCodec.GZIP, 2)],
)
def test_checksums_inside_a_wrapper_are_compared(magic: int, codec: CompressionCodec, depth: int) -> None:
    """The outer CRC covers only the compressed bytes.

    Apache Kafka checks the inner CRCs, too.
    """
    data = damaged_inside(magic, codec, depth)
    whole = list(split_batches(data))
    assert len(whole) == 1
    complaint = "has checksum"
    with pytest.raises(CorruptRecordError, match=complaint):
        decode_batch(data, 0, len(data), "t", 0)
    with pytest.raises(CorruptRecordError, match=complaint):
        decode_columns(data)
    with pytest.raises(CorruptRecordError, match=complaint):
        convert_up(data, nested=True)
    unchecked = decode_columns(data, verify_crcs=False)
    assert bytes(unchecked.value.data[unchecked.value.offsets[1] : unchecked.value.offsets[2]]) == b"evil"
    assert [record.value for record in decode_batch(data, 0, len(data), "t", 0, verify=False)] == [
        b"good",
        b"evil",
    ]


@pytest.mark.parametrize("is_compiled", [True, False])
def test_what_is_small_is_compressed_again_quickly(
    is_compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small data uses gzip level 1, large data the default level; the records are equal."""
    if not is_compiled:
        monkeypatch.setattr(message_loops, "_raise_messages", None)
        monkeypatch.setattr(message_loops, "_lower_records", None)
    levels: list[int | None] = []

    def compress(data: memoryview, level: int | None, _: bool) -> bytes:
        levels.append(level)
        return real(data, level, _)

    real = gzip.compress
    monkeypatch.setattr(gzip, "compress", compress)
    rows = [(None, b"%d" % number, [], 1000) for number in range(500)]
    batch = encode_batch(rows, codec=CompressionCodec.GZIP)
    old = encode_message_set(
        [(None, value, time) for _, value, _, time in rows], 1, codec=CompressionCodec.GZIP
    )
    levels.clear()
    for quick_bytes in (0, len(batch) - 1, len(batch)):
        assert [row[4] for row in decode_all(convert_down(batch, 1, quick_bytes=quick_bytes))] == [
            row[1] for row in rows
        ]
    for quick_bytes in (0, len(old) - 1, len(old)):
        found = decode_all(convert_up(old, base_offset=0, quick_bytes=quick_bytes))
        assert [row[4] for row in found] == [row[1] for row in rows]
    assert levels == [None, None, 1] * 2
    snappy = encode_batch(rows, codec=CompressionCodec.SNAPPY)
    assert convert_down(snappy, 1, quick_bytes=1 << 20) == convert_down(snappy, 1)
