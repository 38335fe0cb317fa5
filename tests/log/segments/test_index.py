"""Tests of index files: their bytes are in Kafka's format, and damaged ones are detected."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.log.segments.index import SAVE_ENTRIES, DamagedIndexError, OffsetIndex, TimeIndex, last_entry_in

BASE = 1000
OFFSET_ENTRIES = [(1005, 4200), (1011, 8437), (66_541, 0x0102_0304)]
OFFSET_BYTES = bytes.fromhex("00000005 00001068  0000000b 000020f5  00010005 01020304".replace(" ", ""))
TIME_ENTRIES = [(1_700_000_000_000, 1003), (1_700_000_000_001, 1003), (1_700_000_012_345, 66_541)]
TIME_BYTES = bytes.fromhex(
    "0000018bcfe56800 00000003  0000018bcfe56801 00000003  0000018bcfe59839 00010005".replace(" ", "")
)


def offset_index(path: Path) -> OffsetIndex:
    index = OffsetIndex(str(path), BASE)
    for offset, position in OFFSET_ENTRIES:
        index.append(offset, position)
    return index


def time_index(path: Path) -> TimeIndex:
    index = TimeIndex(str(path), BASE)
    for timestamp, offset in TIME_ENTRIES:
        index.append(timestamp, offset)
    return index


def test_files_are_laid_out_as_kafka_lays_them_out(tmp_path: Path) -> None:
    path = tmp_path / "x.index"
    offset_index(path).save()
    assert path.read_bytes() == OFFSET_BYTES
    loaded = OffsetIndex.load(str(path), BASE, 1 << 30)
    assert [(BASE + o, p) for o, p in zip(loaded.offsets, loaded.positions, strict=True)] == OFFSET_ENTRIES
    path = tmp_path / "x.timeindex"
    time_index(path).save()
    assert path.read_bytes() == TIME_BYTES
    times = TimeIndex.load(str(path), BASE)
    assert [(t, BASE + o) for t, o in zip(times.timestamps, times.offsets, strict=True)] == TIME_ENTRIES


def test_lookups_find_the_nearest_entry_below(tmp_path: Path) -> None:
    index = offset_index(tmp_path / "x")
    assert [index.place_of(offset) for offset in (0, 1004, 1005, 1010, 1011, 66_540, 66_541, 1 << 60)] == [
        *(-1, -1, 0, 0, 1, 1, 2, 2)
    ]
    assert [index.place_at(position) for position in (0, 4199, 4200, 8436, 8437, 1 << 40)] == [
        *(-1, -1, 0, 0, 1, 2)
    ]
    times = time_index(tmp_path / "y")
    first = TIME_ENTRIES[0][0]
    assert [times.lookup(time) for time in (0, first, first + 1, first + 2, first + 12_345, 1 << 60)] == [
        *(1000, 1000, 1004, 1004, 1004, 66_542)
    ]
    assert times.last() == TIME_ENTRIES[-1]
    assert TimeIndex("", BASE).last() == (-1, BASE)


def test_a_time_that_says_nothing_new_is_no_entry(tmp_path: Path) -> None:
    times = time_index(tmp_path / "y")
    times.append(TIME_ENTRIES[-1][0], 70_000)
    times.append(5, 70_001)
    assert len(times) == 3
    nothing = TimeIndex("", BASE)
    nothing.append(-1, 1001)
    assert len(nothing) == 0


def test_entries_are_added_to_the_file_and_cut_from_it(tmp_path: Path) -> None:
    path = tmp_path / "x"
    index = offset_index(path)
    index.save()
    index.append(70_000, 0x0203_0405)
    index.save()
    assert path.read_bytes() == OFFSET_BYTES + bytes.fromhex("0001 0d88 0203 0405".replace(" ", ""))
    index.truncate(8437)
    assert path.read_bytes() == OFFSET_BYTES[:8]
    index.append(1200, 9000)
    index.save()
    assert path.read_bytes() == OFFSET_BYTES[:8] + bytes.fromhex("000000c800002328")
    times = time_index(path)
    times.save()
    assert path.read_bytes() == TIME_BYTES
    times.truncate(1004)
    assert path.read_bytes() == TIME_BYTES[:24]
    times.truncate(1003)
    assert path.read_bytes() == b""


@pytest.mark.parametrize("zeros", [8 * 3, 8, 10 * 1024 * 1024 - 24])
def test_zeros_at_the_end_are_preallocated_room(tmp_path: Path, zeros: int) -> None:
    path = tmp_path / "x"
    path.write_bytes(OFFSET_BYTES + bytes(zeros))
    index = OffsetIndex.load(str(path), BASE, 1 << 30)
    assert len(index) == 3
    assert last_entry_in(str(path)) is None
    index.save()
    assert path.read_bytes() == OFFSET_BYTES
    path.write_bytes(TIME_BYTES + bytes(zeros // 8 * 12))
    assert len(TimeIndex.load(str(path), BASE)) == 3


def test_an_entry_that_ends_in_zeros_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(bytes.fromhex("00000001 00010000 00000002 01000000".replace(" ", "")))
    assert list(OffsetIndex.load(str(path), BASE, 1 << 30).positions) == [0x10000, 0x1000000]
    assert last_entry_in(str(path)) == (2, 0x1000000)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (OFFSET_BYTES[:-1], "no multiple of 8"),
        (OFFSET_BYTES[8:] + OFFSET_BYTES[:8], "not ascending"),
        (OFFSET_BYTES[:8] * 2, "not ascending"),
        (b"\xff" * 8, "not ascending"),
        (bytes(8) + OFFSET_BYTES[:8] + bytes(8) + OFFSET_BYTES[16:], "not ascending"),
        (OFFSET_BYTES[:16] + bytes.fromhex("0001000540000000"), "of a log of"),
    ],
)
def test_a_file_that_contradicts_itself_is_damaged(tmp_path: Path, data: bytes, reason: str) -> None:
    path = tmp_path / "x.index"
    path.write_bytes(data)
    with pytest.raises(DamagedIndexError, match=reason):
        OffsetIndex.load(str(path), BASE, 0x4000_0000)


@pytest.mark.parametrize("data", [TIME_BYTES[:-1], TIME_BYTES[12:] + TIME_BYTES[:12], TIME_BYTES[:12] * 2])
def test_so_is_a_time_index(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x.timeindex"
    path.write_bytes(data)
    with pytest.raises(DamagedIndexError):
        TimeIndex.load(str(path), BASE)


def test_a_missing_file_is_damage_too(tmp_path: Path) -> None:
    with pytest.raises(DamagedIndexError, match="is missing"):
        OffsetIndex.load(str(tmp_path / "x"), BASE, 0)
    with pytest.raises(DamagedIndexError, match="cannot be read"):
        TimeIndex.load(str(tmp_path), BASE)
    assert last_entry_in(str(tmp_path / "x")) is None
    (tmp_path / "empty").touch()
    assert last_entry_in(str(tmp_path / "empty")) is None


def test_entries_are_written_by_the_page() -> None:
    assert SAVE_ENTRIES * 8 == 4096
