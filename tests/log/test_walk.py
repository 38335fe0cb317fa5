"""Tests of iterating over batch headers: read sizes do not change the entries that are found.

Garbage bytes give valid entries or an error.
"""

from __future__ import annotations

import random

import pytest

from log.log_laws import T0, batch, message
from penstock.errors import CorruptRecordError
from penstock.log.walk import HEAD_BYTES, BatchEntry, fetch_from, walk, walk_buffer, walk_checked

MIXED = [
    message(0, b"", magic=0),
    message(1, b"x" * 50, magic=0),
    batch(2, [T0, T0 + 9, T0 + 3], epoch=4),
    message(5, b"", magic=1, timestamp=77),
    batch(6, value=b"y" * 5000, epoch=-1),
    message(7, b"", magic=0),
]
DATA = b"".join(MIXED)
ENTRIES = [
    BatchEntry(0, 26, 0, 0, -1, -1, 0, 0),
    BatchEntry(26, 76, 1, 1, -1, -1, 0, 0),
    BatchEntry(102, len(MIXED[2]), 2, 4, T0 + 9, 4, 0, 2),
    BatchEntry(102 + len(MIXED[2]), 34, 5, 5, 77, -1, 0, 1),
    BatchEntry(136 + len(MIXED[2]), len(MIXED[4]), 6, 6, T0, -1, 0, 2),
    BatchEntry(136 + len(MIXED[2]) + len(MIXED[4]), 26, 7, 7, -1, -1, 0, 0),
]


def test_entries_say_where_and_what() -> None:
    assert list(walk_buffer(DATA)) == ENTRIES
    assert list(walk_buffer(memoryview(DATA))) == ENTRIES
    assert list(walk_buffer(b"")) == []


@pytest.mark.parametrize("fetch_bytes", [HEAD_BYTES, 44, 100, 4096, 1 << 20])
def test_any_fetch_size_gives_the_same_entries(fetch_bytes: int) -> None:
    assert list(walk(fetch_from(DATA), 0, len(DATA), fetch_bytes)) == ENTRIES
    assert list(walk(fetch_from(DATA), 102, len(DATA), fetch_bytes)) == ENTRIES[2:]


def test_a_walk_ends_before_what_is_not_whole() -> None:
    for end in range(len(DATA) + 1):
        whole = [entry for entry in ENTRIES if entry.position + entry.size <= end]
        assert list(walk_buffer(DATA[:end])) == whole
        assert list(walk(fetch_from(DATA), 0, end)) == whole
        assert list(walk_checked(fetch_from(DATA), end, 0)) == whole


def test_zeros_end_a_walk() -> None:
    for zeros in (1, 17, 26, 43, 61, 5000):
        assert list(walk_buffer(DATA + bytes(zeros))) == ENTRIES
        assert list(walk_checked(fetch_from(DATA + bytes(zeros)), len(DATA) + zeros, 0)) == ENTRIES


@pytest.mark.parametrize(
    "head",
    [
        bytes(8) + b"\0\0\0\x31" + bytes(4) + b"\x03",  # an unknown magic
        bytes(8) + b"\0\0\0\x30" + bytes(4) + b"\x02",  # too short for magic 2
        bytes(8) + b"\0\0\0\x0d" + bytes(4) + b"\0",  # for magic 0
        bytes(8) + b"\0\0\0\x15" + bytes(4) + b"\x01",  # for magic 1
        bytes(8) + b"\xff\0\0\x31" + bytes(4) + b"\x02",  # a negative length
        b"\xff" * 8 + b"\0\0\0\x31" + bytes(4) + b"\x02",  # a negative offset
        bytes(8) + b"\0\0\0\x31" + bytes(4) + b"\x02" + bytes(6) + b"\xff",  # a negative delta
    ],
)
def test_a_header_without_sense_is_named(head: bytes) -> None:
    data = DATA + head.ljust(80, b"\0")
    found = []
    with pytest.raises(CorruptRecordError, match=f"position {len(DATA)}"):
        found.extend(walk_buffer(data))
    assert found == ENTRIES


@pytest.mark.parametrize("number", range(len(MIXED)))
def test_a_checked_walk_ends_at_the_first_wrong_checksum(number: int) -> None:
    entry = ENTRIES[number]
    data = bytearray(DATA)
    data[entry.position + entry.size - 1] ^= 0x10
    found = []
    with pytest.raises(CorruptRecordError, match=f"at position {entry.position} fails"):
        found.extend(walk_checked(fetch_from(bytes(data)), len(data), 0))
    assert found == ENTRIES[:number]


def test_a_checked_walk_wants_offsets_to_ascend() -> None:
    with pytest.raises(CorruptRecordError, match="offset 0 at position 0 where 1 was due"):
        list(walk_checked(fetch_from(DATA), len(DATA), 1))
    data = batch(5, [T0, T0]) + batch(6)
    with pytest.raises(CorruptRecordError, match=r"offset 6 .* where 7 was due"):
        list(walk_checked(fetch_from(data), len(data), 0))


@pytest.mark.parametrize("seed", range(5))
def test_garbage_gives_entries_inside_it_or_the_one_error(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(300):
        data = bytearray(DATA)
        for _ in range(rng.randrange(1, 6)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        end = rng.randrange(len(data) + 1)
        for walked in (walk(fetch_from(bytes(data)), 0, end, rng.choice((43, 64, 4096))), None):
            position = 0
            try:
                for entry in walked or walk_checked(fetch_from(bytes(data)), end, 0):
                    assert entry.position == position
                    position += entry.size
                    assert position <= end
            except CorruptRecordError:
                pass
