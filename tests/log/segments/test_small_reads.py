"""Tests of small reads of a segment, among them one whose limit the first batch alone reaches."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from penstock.errors import StorageError
from penstock.log.contract import Bytes, FileRegion, LogConfig
from penstock.log.segments.segment import READ_AT_ONCE_BYTES, FileSegment
from penstock.records.batch import encode_batch
from penstock.records.format.batch_header import set_base_offset

COUNT = 40


@pytest.fixture
def segment(tmp_path: Path) -> FileSegment:
    """Return a segment of forty batches, each with two records and about 1 KiB."""
    made = FileSegment.create(str(tmp_path), 0, LogConfig(), 0)
    for number in range(COUNT):
        made.append(batch(number), len(batch(number)), 2 * number + 1, 1_000, 1_000)
    return made


def batch(number: int) -> bytes:
    data = bytearray(encode_batch([(None, b"%04d" % number + b"x" * 500, (), 1_000)] * 2))
    set_base_offset(data, 0, 2 * number)
    return bytes(data)


def read(
    segment: FileSegment, offset: int, most: int, up_to: int = 2 * COUNT, *, one: bool = True
) -> tuple[list[Bytes | FileRegion], int]:
    pieces: list[Bytes | FileRegion] = []
    size, _ = segment.read(pieces, offset, most, up_to, one)
    return pieces, size


def test_a_small_read_is_bytes_and_a_large_one_a_region(segment: FileSegment) -> None:
    whole = b"".join(map(batch, range(COUNT)))
    pieces, size = read(segment, 0, len(whole))
    assert size == len(whole) > READ_AT_ONCE_BYTES
    assert isinstance(pieces[0], FileRegion)
    assert pieces[0].read() == whole
    assert read(segment, 0, READ_AT_ONCE_BYTES) == ([whole[: 3 * len(batch(0))]], 3 * len(batch(0)))


@pytest.mark.parametrize("most", [0, 1, 1_000])
def test_a_limit_below_the_first_batch_gives_it_whole_to_a_reader_that_has_nothing(
    segment: FileSegment, most: int
) -> None:
    for offset in range(2 * COUNT):
        assert read(segment, offset, most) == ([batch(offset // 2)], len(batch(0)))
        assert read(segment, offset, most, one=False) == ([], 0)


def test_a_limit_above_the_first_batch_gives_what_fits(segment: FileSegment) -> None:
    size = len(batch(0))
    assert read(segment, 3, 2 * size) == ([batch(1) + batch(2)], 2 * size)
    assert read(segment, 3, 2 * size - 1) == ([batch(1)], size)


def test_nothing_behind_the_high_watermark_is_read(segment: FileSegment) -> None:
    assert read(segment, 4, 1, up_to=5) == ([], 0)
    assert read(segment, 4, 1, up_to=6) == ([batch(2)], len(batch(0)))


def test_a_file_that_has_become_shorter_is_damage(segment: FileSegment) -> None:
    read(segment, 2 * COUNT - 1, 1)  # where the last batch is, is remembered
    os.truncate(segment.path, segment.size - 1)
    with pytest.raises(StorageError, match="is damaged"):
        read(segment, 2 * COUNT - 2, 1 << 20)
