"""Tests of the Kafka 0.7 log: segments with byte offsets, rolling, recovery, retention and OFFSETS."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from penstock.common import operating_system
from penstock.errors import StorageError
from penstock.v07.byte_log import HOUR_MS, ByteLog, ByteLogConfig, OffsetOutOfRange, segment_starts
from penstock.v07.message_set import encode_set

MESSAGE = encode_set([bytes(90)])
"""An encoded message set of 100 bytes with one message."""


def opened(
    path: Path, config: ByteLogConfig | None = None, *, is_clean: bool = True, now_ms: int = 0
) -> ByteLog:
    return ByteLog(str(path), config or ByteLogConfig(), now_ms=now_ms, is_clean=is_clean)


def fill(log: ByteLog, count: int, now_ms: int = 0) -> None:
    for _ in range(count):
        log.append(memoryview(MESSAGE), 1, now_ms=now_ms)


def read(log: ByteLog, offset: int, size_max: int = 1 << 20) -> bytes:
    region = log.read(offset, size_max)
    return b"" if region is None else region.read()


def test_a_segment_larger_than_the_limit_gets_no_more(tmp_path: Path) -> None:
    log = opened(tmp_path, ByteLogConfig(segment_bytes=300))
    fill(log, 10)
    assert segment_starts(str(tmp_path)) == [0, 400, 800]
    assert [len(read(log, offset)) for offset in (0, 100, 399, 400, 800, 999, 1000)] == [
        400,
        300,
        1,
        400,
        200,
        1,
        0,
    ]
    assert log.offsets_before(-1, 10, now_ms=1) == [1000, 800, 400, 0]
    assert log.offsets_before(-1, 2, now_ms=1) == [1000, 800]
    assert log.offsets_before(-2, 10, now_ms=1) == [0]
    for offset in (-1, 1001):
        with pytest.raises(OffsetOutOfRange):
            log.read(offset, 1)


def test_a_segment_rolls_by_age(tmp_path: Path) -> None:
    log = opened(tmp_path, ByteLogConfig(roll_ms=HOUR_MS))
    for hours in (0, 1, 2, 2, 4):
        fill(log, 1, hours * HOUR_MS)
    assert segment_starts(str(tmp_path)) == [0, 200, 400]


def test_what_is_not_flushed_is_not_there(tmp_path: Path) -> None:
    log = opened(tmp_path, ByteLogConfig(flush_messages=3, flush_ms=3_000))
    fill(log, 2)
    assert (log.end, read(log, 0)) == (0, b"")
    with pytest.raises(OffsetOutOfRange):
        log.read(100, 1)
    assert log.offsets_before(-1, 5, now_ms=0) == [0, 0]
    log.maintain(now_ms=2_999)
    assert log.end == 0
    log.maintain(now_ms=3_000)
    assert log.end == 200
    fill(log, 3, 3_001)
    assert log.end == 500
    fill(log, 1, 3_001)
    log.close(now_ms=3_001)
    assert opened(tmp_path).end == 600


@pytest.mark.parametrize("size", [1, 4, 50, 99, 100, 101, 199, 200])
def test_a_torn_tail_is_cut_unless_the_stop_was_clean(tmp_path: Path, size: int) -> None:
    log = opened(tmp_path)
    fill(log, 2)
    log.close(now_ms=0)
    os.truncate(tmp_path / "00000000000000000000.kafka", size)
    assert opened(tmp_path).end == size
    assert opened(tmp_path, is_clean=False).end == size // 100 * 100


def test_a_damaged_message_ends_the_log(tmp_path: Path) -> None:
    log = opened(tmp_path)
    fill(log, 3)
    log.close(now_ms=0)
    path = tmp_path / "00000000000000000000.kafka"
    data = bytearray(path.read_bytes())
    data[150] ^= 1
    path.write_bytes(data)
    assert opened(tmp_path, is_clean=False).end == 100


def test_a_gap_between_segments_is_told(tmp_path: Path) -> None:
    log = opened(tmp_path, ByteLogConfig(segment_bytes=100))
    fill(log, 6)
    log.close(now_ms=0)
    (tmp_path / "00000000000000000200.kafka").unlink()
    with pytest.raises(StorageError, match=r"ends at 200, but the next one is 0+400\.kafka"):
        opened(tmp_path)


def test_retention_by_age_moves_the_start_and_never_the_end(tmp_path: Path) -> None:
    config = ByteLogConfig(segment_bytes=100, retention_ms=HOUR_MS)
    log = opened(tmp_path, config)
    fill(log, 2)
    fill(log, 2, HOUR_MS)
    log.maintain(now_ms=HOUR_MS + 1)
    assert (log.start, log.end) == (200, 400)
    with pytest.raises(OffsetOutOfRange):
        log.read(199, 1)
    log.maintain(now_ms=3 * HOUR_MS)
    assert (log.start, log.end) == (400, 400)
    fill(log, 1, 3 * HOUR_MS)
    assert read(log, 400) == MESSAGE
    assert segment_starts(str(tmp_path)) == [400]


def test_retention_by_size(tmp_path: Path) -> None:
    log = opened(tmp_path, ByteLogConfig(segment_bytes=100, retention_bytes=450))
    fill(log, 10)
    log.maintain(now_ms=0)
    assert log.start == 400


def test_offsets_before_a_time_have_the_granularity_of_segments(tmp_path: Path) -> None:
    log = opened(tmp_path, ByteLogConfig(segment_bytes=100))
    for seconds in range(6):
        fill(log, 1, 1_000 * seconds)
    assert segment_starts(str(tmp_path)) == [0, 200, 400]
    # Segment 0 was last written at 1 s, 200 at 3 s, 400 at 5 s.
    assert log.offsets_before(999, 9, now_ms=9_000) == []
    assert log.offsets_before(1_000, 9, now_ms=9_000) == [0]
    assert log.offsets_before(4_999, 9, now_ms=9_000) == [200, 0]
    assert log.offsets_before(5_000, 1, now_ms=9_000) == [400]
    assert log.offsets_before(9_000, 9, now_ms=9_000) == [600, 400, 200, 0]


def test_a_full_disk_leaves_the_log_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = opened(tmp_path)
    fill(log, 1)
    write = operating_system.pwrite

    def full(number: int, data: bytes, position: int) -> int:
        write(number, bytes(data)[:30], position)
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(operating_system, "pwrite", full)
        with pytest.raises(StorageError, match="the disk is full"):
            fill(log, 1)
    fill(log, 1)
    assert read(log, 0) == MESSAGE * 2
