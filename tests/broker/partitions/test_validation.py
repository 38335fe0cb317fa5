"""Tests of the checks before a batch is appended: every reason to refuse it, and the order of the checks."""

from __future__ import annotations

from typing import Any

import pytest

from broker.bench_node import NOW_MS, batch_of
from for_each import for_each
from penstock.broker.config.values import BrokerConfig, TopicConfig
from penstock.broker.partitions.validation import RejectedRecords, admit_batch, bring_in_line
from penstock.errors import KafkaError
from penstock.protocol.error_codes import ErrorCode
from penstock.records.batch import decode_batch, encode_batch
from penstock.records.compression.codecs import CompressionCodec
from penstock.records.format.batch_header import read_header, refresh_crc


def config_of(**overrides: object) -> TopicConfig:
    texts = {name.replace("_", "."): str(value) for name, value in overrides.items()}
    return TopicConfig(BrokerConfig(), texts)


def patched(batch: bytearray, position: int, *values: int, repair: bool = True) -> bytearray:
    batch[position : position + len(values)] = bytes(values)
    if repair:
        refresh_crc(batch, 0, len(batch))
    return batch


def refusal(records: Any, version: int = 9, config: TopicConfig | None = None) -> ErrorCode:
    view = None if records is None else memoryview(bytearray(records))
    with pytest.raises(KafkaError) as caught:
        admit_batch(view, version, config or config_of(), NOW_MS)
    return ErrorCode(caught.value.code)


GOOD = bytes(batch_of(b"a", b"b"))
NEGATIVE = (0xFF, 0xFF, 0xFF, 0xFF)


def test_a_good_batch_comes_back_as_it_is() -> None:
    view = memoryview(bytearray(GOOD))
    batch, header = admit_batch(view, 9, config_of(), NOW_MS)
    assert batch is view
    assert header.record_count == 2


@pytest.mark.parametrize(
    ("name", "records", "code"),
    [
        ("null", None, ErrorCode.INVALID_RECORD),
        ("empty", b"", ErrorCode.INVALID_RECORD),
        ("too short for a magic byte", GOOD[:16], ErrorCode.INVALID_RECORD),
        ("cut", GOOD[:-1], ErrorCode.INVALID_RECORD),
        ("two batches", GOOD + GOOD, ErrorCode.INVALID_RECORD),
        (
            "length too small",
            patched(bytearray(GOOD), 8, 0, 0, 0, 13, repair=False),
            ErrorCode.CORRUPT_MESSAGE,
        ),
        ("length negative", patched(bytearray(GOOD), 8, *NEGATIVE, repair=False), ErrorCode.CORRUPT_MESSAGE),
        ("magic 1", patched(bytearray(GOOD), 16, 1, repair=False), ErrorCode.INVALID_RECORD),
        ("magic 3", patched(bytearray(GOOD), 16, 3, repair=False), ErrorCode.CORRUPT_MESSAGE),
        ("codec 5", patched(bytearray(GOOD), 22, 5), ErrorCode.UNKNOWN_SERVER_ERROR),
        ("base offset not 0", patched(bytearray(GOOD), 7, 9), ErrorCode.INVALID_RECORD),
        ("wrong checksum", patched(bytearray(GOOD), 70, 9, repair=False), ErrorCode.CORRUPT_MESSAGE),
        ("count 0", patched(bytearray(GOOD), 57, 0, 0, 0, 0), ErrorCode.INVALID_RECORD),
        ("count negative", patched(bytearray(GOOD), 57, *NEGATIVE), ErrorCode.INVALID_RECORD),
        ("count not matching", patched(bytearray(GOOD), 57, 0, 0, 0, 3), ErrorCode.INVALID_RECORD),
        ("last delta negative", patched(bytearray(GOOD), 23, *NEGATIVE), ErrorCode.INVALID_RECORD),
        ("control batch", batch_of(b"x", is_control=True), ErrorCode.INVALID_RECORD),
        ("transactional without producer", batch_of(b"x", is_transactional=True), ErrorCode.INVALID_RECORD),
        ("producer without sequence", batch_of(b"x", producer_id=1), ErrorCode.INVALID_RECORD),
        ("from the future", batch_of(b"x", time_ms=NOW_MS + 3_600_001), ErrorCode.INVALID_TIMESTAMP),
    ],
)
def test_refusals(name: str, records: Any, code: ErrorCode) -> None:
    assert refusal(records) == code


def test_a_batch_too_small_for_its_header_is_corrupt() -> None:
    short = bytearray(GOOD[:40])
    short[8:12] = (40 - 12).to_bytes(4, "big")
    assert refusal(short) == ErrorCode.CORRUPT_MESSAGE


def test_a_few_stray_bytes_behind_the_batch_are_dropped() -> None:
    batch, _ = admit_batch(memoryview(bytearray(GOOD + b"stray")), 9, config_of(), NOW_MS)
    assert bytes(batch) == GOOD


def test_size_limit_comes_before_the_checksum() -> None:
    limited = config_of(max_message_bytes=len(GOOD) - 1)
    assert refusal(GOOD, config=limited) == ErrorCode.MESSAGE_TOO_LARGE
    damaged = patched(bytearray(GOOD), 70, 9, repair=False)
    assert refusal(damaged, config=limited) == ErrorCode.MESSAGE_TOO_LARGE
    exact = config_of(max_message_bytes=len(GOOD))
    admit_batch(memoryview(bytearray(GOOD)), 9, exact, NOW_MS)


def test_zstd_needs_produce_7() -> None:
    zstd = bytes(batch_of(b"a" * 100, codec=CompressionCodec.ZSTD))
    assert refusal(zstd, version=6) == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    admit_batch(memoryview(bytearray(zstd)), 7, config_of(), NOW_MS)


def test_the_window_of_times() -> None:
    old = batch_of(b"x", time_ms=NOW_MS - 5000)
    assert refusal(old, config=config_of(message_timestamp_before_max_ms=4999)) == ErrorCode.INVALID_TIMESTAMP
    admit_batch(memoryview(old), 9, config_of(message_timestamp_before_max_ms=5000), NOW_MS)
    ahead = batch_of(b"x", time_ms=NOW_MS + 3_600_001)
    broker_times = config_of(message_timestamp_type="LogAppendTime")
    admit_batch(memoryview(ahead), 9, broker_times, NOW_MS)
    timeless = batch_of(b"x", time_ms=-1)
    admit_batch(memoryview(timeless), 9, config_of(message_timestamp_before_max_ms=1), NOW_MS)


def test_a_header_that_claims_what_it_cannot_is_put_right() -> None:
    claimed = memoryview(patched(bytearray(GOOD), 22, 8))
    batch, header = admit_batch(claimed, 9, config_of(), NOW_MS)
    assert (header.attributes, bytes(batch)) == (0, GOOD)
    untold = memoryview(patched(bytearray(GOOD), 35, *b"\xff" * 8))
    batch, header = admit_batch(untold, 9, config_of(), NOW_MS)
    assert (header.max_timestamp, bytes(batch)) == (NOW_MS, GOOD)


def test_records_outside_the_window_are_named() -> None:
    rows = [(b"k", b"v", [], time) for time in (NOW_MS, NOW_MS + 3_600_001, -1, NOW_MS + 5_000_000)]
    with pytest.raises(RejectedRecords) as caught:
        admit_batch(memoryview(bytearray(encode_batch(rows))), 9, config_of(), NOW_MS)
    assert (caught.value.code, [index for index, _ in caught.value.records]) == (32, [1, 3])
    assert caught.value.detail == "One or more records have been rejected due to invalid timestamp"
    assert caught.value.records[0][1] == (
        f"timestamp {NOW_MS + 3_600_001} is more than 3600000 ms ahead of the broker"
    )


def test_compacted_topics_need_keys_and_say_which_records_lack_one() -> None:
    config = config_of(cleanup_policy="compact")
    keyed = memoryview(batch_of(b"a"))
    assert bring_in_line(keyed, read_header(keyed), config) is keyed
    bare = memoryview(batch_of(b"a", b"b", key=None))
    with pytest.raises(RejectedRecords) as caught:
        bring_in_line(bare, read_header(bare), config)
    assert caught.value.code == ErrorCode.INVALID_RECORD
    assert [index for index, _ in caught.value.records] == [0, 1]


@for_each(
    [
        (stored, sent)
        for sent in list(CompressionCodec)
        for stored in ["uncompressed", "gzip", "snappy", "lz4", "zstd"]
    ]
)
def test_topics_stored_in_a_codec_of_their_own(stored: str, sent: CompressionCodec) -> None:
    sent_batch = memoryview(
        batch_of(b"a" * 500, None, codec=sent, producer_id=5, producer_epoch=2, base_sequence=9)
    )
    header = read_header(sent_batch)
    batch = bring_in_line(sent_batch, header, config_of(compression_type=stored))
    result = read_header(batch)
    assert result.codec == (
        CompressionCodec.NONE if stored == "uncompressed" else CompressionCodec[stored.upper()]
    )
    assert result[9:] == header[9:]
    rows = decode_batch(batch, 0, len(batch), "t", 0)
    assert rows == decode_batch(sent_batch, 0, len(sent_batch), "t", 0)


def test_damaged_compression_is_found_where_records_are_looked_at() -> None:
    batch = batch_of(b"a" * 500, codec=CompressionCodec.GZIP)
    batch[70:80] = bytes(10)
    refresh_crc(batch, 0, len(batch))
    with pytest.raises(KafkaError) as caught:
        bring_in_line(memoryview(batch), read_header(batch), config_of(compression_type="lz4"))
    assert caught.value.code == ErrorCode.INVALID_RECORD  # sent again, it would be no better
