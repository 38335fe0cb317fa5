"""Tests of damaged and missing segments: a reader gets the written records up to an error.

No record is skipped silently.
"""

from __future__ import annotations

import shutil
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from log.log_laws import T0, add, message
from penstock.errors import CorruptRecordError, StorageError
from penstock.log import DataDirectory
from penstock.log.compaction.compactor import CompactionPolicy, compact
from penstock.log.contract import DamagedLogError, LogConfig
from penstock.log.directory.checkpoint import CLEANED, write_offsets
from penstock.log.disk.disk_log import DiskLog
from penstock.log.disk.scan import read_log
from penstock.model import TopicPartition
from penstock.records.batch import decode_batch, encode_batch
from penstock.records.format.batch_header import split_batches

CONFIG = LogConfig(segment_bytes=1500, index_interval_bytes=300)
BATCHES, RECORDS = 45, 3
END = BATCHES * RECORDS

Rows = list[tuple[int, bytes]]
TRUTH: Rows = [(offset, b"v%d" % offset) for offset in range(END)]


def write(directory: Path, magic: int = 2) -> list[Path]:
    """Write a log of several segments; return their files."""
    log = DiskLog(str(directory), CONFIG, now_ms=T0)
    if magic < 2:
        for offset in range(END):
            add(log, message(offset, b"v%d" % offset, magic=magic), first=offset, last=offset)
    for first in range(0, END if magic == 2 else 0, RECORDS):
        rows = [(b"k%d" % n, b"v%d" % n, (), T0 + n) for n in range(first, first + RECORDS)]
        data = encode_batch(rows, base_offset=first, partition_leader_epoch=0)
        add(log, data, first=first, last=first + RECORDS - 1, timestamp=T0 + first + RECORDS - 1)
    log.flush()
    log.close()
    return segment_files(directory)


def segment_files(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.log"))


def reopened(directory: Path, config: LogConfig = CONFIG, **fields: Any) -> DiskLog:
    return DiskLog(str(directory), config, now_ms=T0, clean_shutdown=True, **fields)


def read_through(log: DiskLog, start: int, max_bytes: int) -> Iterator[tuple[int, bytes]]:
    """Fetch from `start` to the end as a client that checks CRCs does; yield offset and value."""
    offset = start
    while offset < log.end_offset:
        data = log.read(offset, max_bytes).to_bytes()
        before = offset
        for begin, stop, _ in split_batches(data):
            for row in decode_batch(data, begin, stop, "t", 0):
                assert row.offset < log.end_offset
                if row.offset >= offset:
                    offset = row.offset + 1
                    yield row.offset, row.value or b""
        assert offset > before, "an answer that leads nowhere"


def check_nothing_passed_over(found: Iterator[tuple[int, bytes]], start: int) -> bool:
    """Check that the records found are those written from `start` on, in order.

    Return True if an error ended the reading.
    """
    rows = []
    failed = False
    try:
        for row in found:
            rows.append(row)  # noqa: PERF402  what came before the error counts
    except (StorageError, CorruptRecordError):
        failed = True
    assert rows == TRUTH[start : start + len(rows)]
    assert failed or start + len(rows) == END
    return failed


def read_table(directory: Path) -> Iterator[tuple[int, bytes]]:
    from penstock.log.disk.scan import scan_log

    for batch in scan_log(directory, columns=["offset", "value"]):
        yield from zip(batch.column("offset").to_pylist(), batch.column("value").to_pylist(), strict=True)


def flips(**fields: tuple[int, int]) -> list[Any]:
    """Return test parameters that flip a bit of batch header fields, given as name=(position, size)."""
    return [
        pytest.param(at + size - 1 - bit // 8, 1 << bit % 8, id=f"{name} bit {bit}")
        for name, (at, size) in fields.items()
        for bit in range(8 * size)
        if bit % 3 == 0 or bit > 8 * size - 4
    ]


def flip(path: Path, at: int, mask: int, original: bytes) -> None:
    data = bytearray(original)
    data[at] ^= mask
    path.write_bytes(data)


@pytest.mark.parametrize(("at", "mask"), flips(length=(8, 4), magic=(16, 1)))
def test_a_flipped_bit_in_a_closed_segment_is_an_error_wherever_it_is_met(
    at: int, mask: int, tmp_path: Path
) -> None:
    files = write(tmp_path / "t-0")
    original = files[1].read_bytes()
    first, behind = int(files[1].stem), int(files[2].stem)
    starts = [start for start, _, _ in split_batches(original)]
    for begin in (starts[0], starts[len(starts) // 2], starts[-1]):
        flip(files[1], begin + at, mask, original)
        for max_bytes in (1, 700, 1 << 20):
            assert check_nothing_passed_over(read_through(reopened(tmp_path / "t-0"), 0, max_bytes), 0)
        log = reopened(tmp_path / "t-0")
        assert not check_nothing_passed_over(read_through(log, behind, 700), behind), "what follows is there"
        for start in range(first, behind):
            check_nothing_passed_over(read_through(log, start, 300), start)
        assert check_nothing_passed_over(read_table(tmp_path / "t-0"), 0)


@pytest.mark.parametrize(("at", "mask"), flips(offset=(0, 8), delta=(23, 4)))
def test_offsets_that_a_flipped_bit_has_changed_are_not_believed(at: int, mask: int, tmp_path: Path) -> None:
    """The CRC does not cover a batch's base offset.

    A base offset with a high bit flipped would make a reader skip all later records.
    """
    files = write(tmp_path / "t-0")
    original = files[1].read_bytes()
    first, behind = int(files[1].stem), int(files[2].stem)
    starts = [start for start, _, _ in split_batches(original)]
    for number in (1, len(starts) // 2, len(starts) - 1):
        flip(files[1], starts[number] + at, mask, original)
        assert check_nothing_passed_over(read_table(tmp_path / "t-0"), 0)
        log = reopened(tmp_path / "t-0")
        try:
            data = log.read(first + RECORDS * number, 1).to_bytes()
        except DamagedLogError:
            continue
        # Nothing was noticed yet; then it is the batch itself that is handed out, or the one in its place.
        base = struct.unpack_from(">q", data)[0]
        assert first <= base < behind


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("bit", range(0, 32, 3))
def test_a_flipped_bit_in_the_length_of_an_old_message(magic: int, bit: int, tmp_path: Path) -> None:
    damaged = write(tmp_path / "t-0", magic)[1]
    data = bytearray(damaged.read_bytes())
    (start, _, _) = list(split_batches(bytes(data)))[5]
    data[start + 11 - bit // 8] ^= 1 << bit % 8
    damaged.write_bytes(data)
    for max_bytes in (1, 700, 1 << 20):
        assert check_nothing_passed_over(read_through(reopened(tmp_path / "t-0"), 0, max_bytes), 0)
    assert check_nothing_passed_over(read_table(tmp_path / "t-0"), 0)


@pytest.mark.parametrize("cut", [1, 30, 70, 200, 700])
def test_a_closed_segment_that_was_cut_is_an_error_where_it_ends(cut: int, tmp_path: Path) -> None:
    files = write(tmp_path / "t-0")
    whole = files[1].read_bytes()
    zeros = [whole[:-cut] + bytes(cut)] if cut >= 200 else []  # fewer, and a checksum tells
    for data in (whole[:-cut], *zeros):
        files[1].write_bytes(data)
        log = reopened(tmp_path / "t-0")
        rows: Rows = []
        with pytest.raises(DamagedLogError, match=files[1].name):
            rows.extend(read_through(log, 0, 1 << 20))
        log = reopened(tmp_path / "t-0")
        kept = [begin for begin, stop, _ in split_batches(whole) if stop <= len(whole) - cut]
        whole_batches = int(files[1].stem) + RECORDS * len(kept)
        found = list(_until_error(read_through(log, 0, 250)))
        assert found == TRUTH[:whole_batches], "all that is whole before it is handed out"
        assert check_nothing_passed_over(read_table(tmp_path / "t-0"), 0)


def _until_error(found: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    try:
        yield from found
    except DamagedLogError:
        return


@pytest.mark.parametrize("number", [1, 2])
def test_a_segment_missing_in_the_middle_is_an_error_at_the_gap(number: int, tmp_path: Path) -> None:
    files = write(tmp_path / "t-0")
    gap, behind = int(files[number].stem), int(files[number + 1].stem)
    files[number].unlink()
    for max_bytes in (300, 1 << 20):
        log = reopened(tmp_path / "t-0")
        assert check_nothing_passed_over(read_through(log, 0, max_bytes), 0)
        with pytest.raises(DamagedLogError, match=f"offsets {gap} to {behind - 1} are missing"):
            log.read(gap, 300)
        with pytest.raises(DamagedLogError, match="are missing"):
            log.read(behind - 1, 300)
        assert not check_nothing_passed_over(read_through(log, behind, max_bytes), behind)
    with pytest.raises(DamagedLogError, match="are missing"):
        read_log(tmp_path / "t-0")
    assert read_log(tmp_path / "t-0", start=behind).num_rows == END - behind
    assert read_log(tmp_path / "t-0", end=gap).num_rows == gap
    # Deleting what comes before the gap is the way past it.
    log.delete_before(behind)
    assert not check_nothing_passed_over(read_through(log, behind, 300), behind)


def compacted_log(directory: Path) -> DiskLog:
    """Return a log that Penstock has compacted."""
    log = DiskLog(str(directory), CONFIG._replace(compacted=True), now_ms=T0)
    for turn in range(40):
        first = log.end_offset
        rows = [(b"k%d" % turn if turn < 5 else b"often", b"x" * 20, (), T0), (b"other", b"y", (), T0)]
        add(log, encode_batch(rows, base_offset=first), first=first, last=first + 1)
    log._roll(log.end_offset, T0)
    add(log, encode_batch([(b"z", b"", (), T0)], base_offset=80), first=80, last=80)
    assert compact(log, CompactionPolicy(min_dirty_ratio=0), now_ms=T0)
    log.close()
    return log


def drop_last_batch(path: Path) -> None:
    """Remove a segment's last batch, as Kafka's compaction does when it removes all of its records.

    Penstock's compaction does not.
    """
    data = path.read_bytes()
    path.write_bytes(data[: list(split_batches(data))[-1][0]])
    for suffix in (".index", ".timeindex"):
        path.with_suffix(suffix).unlink()


@pytest.mark.parametrize("known_by", ["config", "checkpoint", "contents"])
def test_gaps_that_compaction_leaves_are_none(known_by: str, tmp_path: Path) -> None:
    log = compacted_log(tmp_path / "t-0")
    first, *_ = segment_files(tmp_path / "t-0")
    drop_last_batch(first)
    config = CONFIG._replace(compacted=known_by == "config")
    cleaned_to = log.cleaned_to if known_by == "checkpoint" else 0
    if cleaned_to:
        write_offsets(str(tmp_path / CLEANED), {TopicPartition("t", 0): cleaned_to})
    again = reopened(tmp_path / "t-0", config, cleaned_to=cleaned_to)
    data = again.read(0, 1 << 20).to_bytes()
    offsets = [
        row.offset
        for begin, stop, _ in split_batches(data)
        for row in decode_batch(data, begin, stop, "t", 0)
    ]
    assert offsets[-1] == 80
    if known_by != "config":
        assert read_log(tmp_path / "t-0").num_rows == len(offsets)


def test_producers_are_known_as_far_as_a_damaged_segment_can_be_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = write(tmp_path / "t-0")
    data = files[1].read_bytes()
    files[1].write_bytes(data[:-5])
    log = reopened(tmp_path / "t-0")
    offsets = [header.base_offset for header in log.iter_batch_headers()]
    missing = int(files[2].stem) - RECORDS
    assert offsets == [offset for offset in range(0, END, RECORDS) if offset != missing]
    assert "is damaged" in caplog.text


def test_a_log_whose_directory_was_copied_whole_is_whole(tmp_path: Path) -> None:
    """The test makes sure that no damage is reported for a complete copy."""
    directory = DataDirectory(str(tmp_path / "data"))
    log = directory.create_log(TopicPartition("t", 0), config=CONFIG, now_ms=T0)
    for first in range(0, END, RECORDS):
        rows = [(None, b"v%d" % n, (), T0 + n) for n in range(first, first + RECORDS)]
        add(log, encode_batch(rows, base_offset=first), first=first, last=first + RECORDS - 1)
    log.delete_before(60)
    directory.close()
    shutil.copytree(tmp_path / "data" / "t-0", tmp_path / "t-0")
    for place in (tmp_path / "data" / "t-0", tmp_path / "t-0"):
        for index in (*place.glob("*.index"), *place.glob("*.timeindex")):
            index.unlink()
        again = reopened(place)
        start = again.start_offset
        assert list(read_through(again, start, 300)) == TRUTH[start:]
        assert not check_nothing_passed_over(read_table(place), 60 if place.parent.name == "data" else start)
