"""Tests of all compression formats that Kafka clients send, and of damaged or hostile data."""

from __future__ import annotations

import contextlib
import gzip
import random

import cramjam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from for_each import for_each
from penstock.errors import CorruptRecordError, EncodeError
from penstock.records.compression.codecs import CompressionCodec, compress, decompress

CODECS = [codec for codec in CompressionCodec if codec is not CompressionCodec.NONE]
SIZES = [0, 1, 100, 32 * 1024, 64 * 1024, 200_001]
LIMIT = 1 << 20

LZ4_HEADER = bytes.fromhex("04224d18 6040 82")
LZ4_HEADER_MAGIC_0 = bytes.fromhex("04224d18 6040 1a")
XERIAL_HEADER = bytes.fromhex("82534e41505059 00 00000001 00000001")


def sample(size: int, seed: int = 7) -> bytes:
    """Return `size` bytes, half of them random and half repetitive text."""
    noise = random.Random(seed).randbytes(size // 2)
    return noise + (b"all work and no play " * (size // 20 + 1))[: size - len(noise)]


@for_each([(codec, size) for codec in [CompressionCodec.NONE, *CODECS] for size in SIZES])
def test_round_trip(codec: CompressionCodec, size: int) -> None:
    data = sample(size)
    assert bytes(decompress(codec, compress(codec, data), LIMIT)) == data
    assert bytes(decompress(codec, memoryview(compress(codec, memoryview(data))), LIMIT)) == data


@pytest.mark.parametrize(
    ("codec", "level"), [(1, 1), (1, 9), (1, -1), (3, 1), (3, 9), (3, 12), (4, 1), (4, 19)]
)
def test_levels(codec: int, level: int) -> None:
    data = sample(50_000)
    assert bytes(decompress(codec, compress(codec, data, level), LIMIT)) == data


def test_writers_produce_the_framing_that_java_reads() -> None:
    data = sample(200_001)
    lz4 = compress(CompressionCodec.LZ4, data)
    assert lz4[:7] == LZ4_HEADER  # independent blocks of 64 KiB, no checksums
    assert lz4[-4:] == bytes(4)
    position, blocks = 7, 0
    while size := int.from_bytes(lz4[position : position + 4], "little") & 0x7FFFFFFF:
        assert size <= 64 * 1024
        position += 4 + size
        blocks += 1
    assert (position, blocks) == (len(lz4) - 4, 4)
    assert compress(CompressionCodec.LZ4, data, broken_lz4_checksum=True) == LZ4_HEADER_MAGIC_0 + lz4[7:]
    snappy = compress(CompressionCodec.SNAPPY, data)
    assert snappy[:16] == XERIAL_HEADER
    assert cramjam.snappy.decompress_raw_len(snappy[20:]) == 32 * 1024
    assert compress(CompressionCodec.GZIP, data)[:3] == b"\x1f\x8b\x08"
    assert compress(CompressionCodec.ZSTD, data)[:4] == bytes.fromhex("28b52ffd")


def test_incompressible_lz4_blocks_are_stored() -> None:
    noise = random.Random(1).randbytes(70_000)
    assert len(compress(CompressionCodec.LZ4, noise)) == 7 + 4 + 65_536 + 4 + (70_000 - 65_536) + 4


def test_lz4_header_checksum_is_ignored() -> None:
    data = sample(1000)
    frame = bytearray(compress(CompressionCodec.LZ4, data))
    for checksum in (0x82, 0x1A, 0x00):
        frame[6] = checksum
        assert bytes(decompress(CompressionCodec.LZ4, frame, LIMIT)) == data


@pytest.mark.parametrize("linked", [True, False])
def test_lz4_frames_of_other_libraries(linked: bool) -> None:
    data = sample(200_001)
    compressor = cramjam.lz4.Compressor(level=1, content_checksum=True, block_linked=linked)
    compressor.compress(data)
    frame = bytes(compressor.finish())
    assert bytes(decompress(CompressionCodec.LZ4, frame, LIMIT)) == data
    assert (
        bytes(decompress(CompressionCodec.LZ4, frame + compress(CompressionCodec.LZ4, b"more"), LIMIT))
        == data + b"more"
    )


def test_lz4_block_checksums_and_content_size() -> None:
    block = bytes(cramjam.lz4.compress_block(b"a" * 1000, store_size=False))
    size = len(block).to_bytes(4, "little")
    with_block_checksum = bytes.fromhex("04224d18 7040 ad") + size + block + b"????" + bytes(4)
    with_content_size = (
        bytes.fromhex("04224d18 6840") + (1000).to_bytes(8, "little") + b"?" + size + block + bytes(4)
    )
    for frame in (with_block_checksum, with_content_size):
        assert bytes(decompress(CompressionCodec.LZ4, frame, LIMIT)) == b"a" * 1000


def test_snappy_raw_and_xerial() -> None:
    data = sample(40_000)
    raw = bytes(cramjam.snappy.compress_raw(data))
    assert bytes(decompress(CompressionCodec.SNAPPY, raw, LIMIT)) == data  # librdkafka
    stream = compress(CompressionCodec.SNAPPY, data)
    assert bytes(decompress(CompressionCodec.SNAPPY, stream + stream, LIMIT)) == data + data
    assert bytes(decompress(CompressionCodec.SNAPPY, XERIAL_HEADER, LIMIT)) == b""


def test_gzip_members() -> None:
    first, second = sample(5000), sample(70_000, seed=8)
    assert (
        bytes(decompress(CompressionCodec.GZIP, gzip.compress(first) + gzip.compress(second), LIMIT))
        == first + second
    )
    assert bytes(decompress(CompressionCodec.GZIP, gzip.compress(first) + bytes(512), LIMIT)) == first
    many = b"".join(gzip.compress(bytes([index])) for index in range(256))
    assert bytes(decompress(CompressionCodec.GZIP, many, LIMIT)) == bytes(range(256))


def test_zstd_frames_without_content_size() -> None:
    data = sample(300_000)
    compressor = cramjam.zstd.Compressor(3)
    compressor.compress(data)
    frame = bytes(compressor.finish())
    assert frame[4] >> 6 == 0  # no content size: Java streams like this
    assert not frame[4] & 0x20
    assert bytes(decompress(CompressionCodec.ZSTD, frame, LIMIT)) == data
    skippable = bytes.fromhex("502a4d18 03000000 616263")
    assert (
        bytes(
            decompress(
                CompressionCodec.ZSTD, frame + skippable + compress(CompressionCodec.ZSTD, b"end"), LIMIT
            )
        )
        == data + b"end"
    )


@pytest.mark.parametrize("codec", CODECS)
def test_the_limit_is_exact(codec: CompressionCodec) -> None:
    data = sample(100_000)
    compressed = compress(codec, data)
    assert bytes(decompress(codec, compressed, len(data))) == data
    with pytest.raises(CorruptRecordError):
        decompress(codec, compressed, len(data) - 1)


@pytest.mark.parametrize("codec", CODECS)
def test_a_bomb_does_not_go_off(codec: CompressionCodec) -> None:
    bomb = compress(codec, bytes(50_000_000))
    with pytest.raises(CorruptRecordError):
        decompress(codec, bomb, 100_000)


@for_each(
    [
        (CompressionCodec.GZIP, b""),
        (CompressionCodec.GZIP, b"\x1f\x8b\x08" + bytes(30)),
        (CompressionCodec.SNAPPY, b""),
        (CompressionCodec.SNAPPY, b"\xff\xff\xff\xff\x0f"),  # 4 GiB, says one byte
        (CompressionCodec.SNAPPY, b"\xff\xff\xff\xff\xff\x01"),
        (CompressionCodec.SNAPPY, XERIAL_HEADER + b"\x7f\xff\xff\xff\x00"),
        (CompressionCodec.LZ4, b""),
        (CompressionCodec.LZ4, b"not a frame at all"),
        (CompressionCodec.LZ4, LZ4_HEADER),
        (CompressionCodec.LZ4, LZ4_HEADER + b"\xff\xff\xff\x7f" + bytes(8)),
        (CompressionCodec.LZ4, bytes.fromhex("04224d18 2040 00 00000000")),  # version 0
        (CompressionCodec.LZ4, bytes.fromhex("04224d18 6030 00 00000000")),  # blocks of 16 KiB
        (CompressionCodec.LZ4, bytes.fromhex("04224d18 6140 00 00000000 00000000")),  # a dictionary
        (CompressionCodec.ZSTD, b""),
        (CompressionCodec.ZSTD, b"not a frame at all"),
        (CompressionCodec.ZSTD, bytes.fromhex("28b52ffd")),
        (CompressionCodec.ZSTD, bytes.fromhex("28b52ffd a0 ffffffff 010000")),
        (5, b"anything"),
        (7, b"anything"),
    ]
)
def test_garbage(codec: int, data: bytes) -> None:
    with pytest.raises(CorruptRecordError):
        decompress(codec, data, LIMIT)


@settings(max_examples=60, derandomize=True)
@given(
    codec=st.sampled_from(CODECS), cut=st.integers(0, 400), flip=st.integers(0, 400), mask=st.integers(0, 255)
)
def test_damage_gives_data_or_the_one_error(codec: CompressionCodec, cut: int, flip: int, mask: int) -> None:
    damaged = bytearray(compress(codec, sample(3000))[: -cut or None])
    if damaged:
        damaged[flip % len(damaged)] ^= mask
    with contextlib.suppress(CorruptRecordError):
        assert len(decompress(codec, damaged, 10_000)) <= 10_000


def test_writing_errors_are_the_callers() -> None:
    with pytest.raises(EncodeError, match="codec 5"):
        compress(5, b"")
    with pytest.raises(EncodeError, match="level"):
        compress(CompressionCodec.GZIP, b"x", 1 << 40)


def test_names() -> None:
    assert [CompressionCodec.from_name(name) for name in ("none", "gzip", "snappy", "lz4", "zstd")] == list(
        CompressionCodec
    )
    assert CompressionCodec.from_name(None) is CompressionCodec.NONE
    with pytest.raises(ValueError, match="known: none, gzip"):
        CompressionCodec.from_name("brotli")
