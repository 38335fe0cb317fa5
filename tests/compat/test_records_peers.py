"""Penstock and other libraries read each other's record batches.

Uncompressed batches are equal byte for byte.
"""

from __future__ import annotations

from typing import Any

import pytest

from compat.peers import need_module
from penstock.records.batch import decode_batch, encode_batch
from penstock.records.columns import RecordColumns
from penstock.records.compression.codecs import CompressionCodec, compress, decompress
from penstock.records.decode import decode_columns
from penstock.records.encode import encode_columns
from penstock.records.format.batch_header import split_batches
from penstock.records.legacy import encode_message_set

pytestmark = pytest.mark.compat

kafka_python = need_module("kafka.record.memory_records")
kafka_python_default = need_module("kafka.record.default_records")
kafka_python_legacy = need_module("kafka.record.legacy_records")
aiokafka_default = need_module("aiokafka.record.default_records")
aiokafka_legacy = need_module("aiokafka.record.legacy_records")
aiokafka_memory = need_module("aiokafka.record.memory_records")

T = 1_700_000_000_000
ROWS: list[tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]], int]] = [
    (b"k", b"v" * 70, [("a", b"1"), ("a", None)], T),
    (None, None, [], T - 100),
    (b"", b"", [("größe", b"")], T + 70_000),
    (b"x" * 200, b"y" * 9000, [], T + 3),
    *((None, b"%d" % n * 20, [], T + n) for n in range(300)),
]
OLD_CODECS = [CompressionCodec.NONE, CompressionCodec.GZIP, CompressionCodec.SNAPPY, CompressionCodec.LZ4]
BUILDERS: dict[str, Any] = {
    "kafka-python": kafka_python_default.DefaultRecordBatchBuilder,
    "aiokafka": aiokafka_default.DefaultRecordBatchBuilder,
}
LEGACY_BUILDERS: dict[str, Any] = {
    "kafka-python": kafka_python_legacy.LegacyRecordBatchBuilder,
    "aiokafka": aiokafka_legacy.LegacyRecordBatchBuilder,
}
READERS: dict[str, Any] = {
    "kafka-python": kafka_python.MemoryRecords,
    "aiokafka": aiokafka_memory.MemoryRecords,
}


def built_by(peer: str, codec: int) -> bytes:
    builder = BUILDERS[peer](
        magic=2,
        compression_type=int(codec),
        is_transactional=0,
        producer_id=7,
        producer_epoch=2,
        base_sequence=5,
        batch_size=1 << 20,
    )
    for offset, (key, value, headers, timestamp) in enumerate(ROWS):
        assert builder.append(offset, timestamp=timestamp, key=key, value=value, headers=headers) is not None
    return bytes(builder.build())


def built_by_old(peer: str, magic: int, codec: int) -> bytes:
    builder = LEGACY_BUILDERS[peer](magic=magic, compression_type=int(codec), batch_size=1 << 20)
    for offset, (key, value, _, timestamp) in enumerate(ROWS):
        assert builder.append(offset, timestamp=timestamp, key=key, value=value) is not None
    return bytes(builder.build())


def ours(codec: int) -> bytes:
    return encode_batch(ROWS, codec=codec, producer_id=7, producer_epoch=2, base_sequence=5)


def read_by(peer: str, data: bytes) -> list[tuple[Any, ...]]:
    reader = READERS[peer](data)
    found = []
    while reader.has_next():
        batch = reader.next_batch()
        assert batch.validate_crc()
        for r in batch:
            key = None if r.key is None else bytes(r.key)
            value = None if r.value is None else bytes(r.value)
            found.append((r.offset, r.timestamp, key, value, [(name, h) for name, h in r.headers]))
    return found


def read_by_us(data: bytes) -> list[tuple[Any, ...]]:
    return [
        (r.offset, r.timestamp, r.key, r.value, list(r.headers))
        for start, end, _ in split_batches(data)
        for r in decode_batch(data, start, end, "t", 0)
    ]


def values_of(columns: RecordColumns) -> list[bytes | None]:
    assert columns.value is not None
    return columns.value.to_list()


EXPECTED = [(n, time, key, value, headers) for n, (key, value, headers, time) in enumerate(ROWS)]


@pytest.mark.parametrize("peer", BUILDERS)
def test_same_bytes(peer: str) -> None:
    theirs = bytearray(built_by(peer, CompressionCodec.NONE))
    theirs[12:16] = b"\xff" * 4  # some write leader epoch 0, Java -1; the broker fills it in
    assert theirs == ours(CompressionCodec.NONE)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("peer", LEGACY_BUILDERS)
def test_same_bytes_of_old_messages(peer: str, magic: int) -> None:
    rows = [(key, value, timestamp) for key, value, _, timestamp in ROWS]
    assert built_by_old(peer, magic, CompressionCodec.NONE) == encode_message_set(rows, magic)


@pytest.mark.parametrize("codec", list(CompressionCodec))
@pytest.mark.parametrize("peer", BUILDERS)
def test_theirs_in_our_readers(peer: str, codec: CompressionCodec) -> None:
    data = built_by(peer, codec)
    assert read_by_us(data) == EXPECTED
    assert values_of(decode_columns([data])) == [row[1] for row in ROWS]


@pytest.mark.parametrize("codec", list(CompressionCodec))
@pytest.mark.parametrize("peer", READERS)
def test_ours_in_their_readers(peer: str, codec: CompressionCodec) -> None:
    assert read_by(peer, ours(codec)) == EXPECTED
    batches = encode_columns(
        decode_columns([ours(CompressionCodec.NONE)]), codec=codec, base_offset=0, batch_bytes_max=4000
    )
    assert len(batches) > 3
    assert read_by(peer, b"".join(batches)) == EXPECTED


@pytest.mark.parametrize(
    ("magic", "codec"),
    # Neither peer does lz4 in magic 0: one refuses, the other needs a library for the broken checksum.
    [
        (magic, codec)
        for magic in (0, 1)
        for codec in OLD_CODECS
        if (magic, codec) != (0, CompressionCodec.LZ4)
    ],
)
@pytest.mark.parametrize("peer", LEGACY_BUILDERS)
def test_old_messages_both_ways(peer: str, magic: int, codec: CompressionCodec) -> None:
    rows = [(key, value, timestamp) for key, value, _, timestamp in ROWS]
    expected = [(n, time if magic else -1, key, value, []) for n, time, key, value, _ in EXPECTED]
    assert read_by_us(built_by_old(peer, magic, codec)) == expected
    found = read_by(peer, encode_message_set(rows, magic, codec=codec))
    assert [
        (n, time if magic else -1, key, value, headers) for n, time, key, value, headers in found
    ] == expected
    columns = decode_columns([built_by_old(peer, magic, codec)])
    assert columns.timestamps is not None
    assert columns.timestamps.tolist() == [row[1] for row in expected]


DATA = b"".join(value or b"" for _, value, _, _ in ROWS) * 20


def test_lz4_of_other_libraries() -> None:
    frame = need_module("lz4.frame")
    assert frame.decompress(compress(CompressionCodec.LZ4, DATA)) == DATA
    assert frame.decompress(compress(CompressionCodec.LZ4, DATA, 9)) == DATA
    for linked in (True, False):
        for size in (4, 5, 6, 7):
            for checks in (True, False):
                theirs = frame.compress(
                    DATA,
                    block_linked=linked,
                    block_size=size,
                    block_checksum=checks,
                    content_checksum=checks,
                    store_size=checks,
                )
                assert bytes(decompress(CompressionCodec.LZ4, theirs + theirs, 1 << 24)) == DATA + DATA


def test_zstd_of_other_libraries() -> None:
    zstandard = need_module("zstandard")
    assert zstandard.ZstdDecompressor().decompress(compress(CompressionCodec.ZSTD, DATA)) == DATA
    compressor = zstandard.ZstdCompressor(write_content_size=False, write_checksum=True)
    theirs = compressor.compress(DATA)
    assert bytes(decompress(CompressionCodec.ZSTD, theirs + theirs, 1 << 24)) == DATA + DATA
    stream = compressor.compressobj()
    assert bytes(decompress(CompressionCodec.ZSTD, stream.compress(DATA) + stream.flush(), 1 << 24)) == DATA


def test_snappy_of_other_libraries() -> None:
    snappy = need_module("snappy")
    assert bytes(decompress(CompressionCodec.SNAPPY, snappy.compress(DATA), 1 << 24)) == DATA
    codec = need_module("kafka.codec")
    assert bytes(decompress(CompressionCodec.SNAPPY, codec.snappy_encode(DATA), 1 << 24)) == DATA
    assert codec.snappy_decode(compress(CompressionCodec.SNAPPY, DATA)) == DATA
