"""Tests of the index of aborted transactions: its files, and the entries that a reader gets."""

from __future__ import annotations

import errno
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.broker.partitions.producers.aborted_index import AbortedIndex
from penstock.broker.partitions.producers.transactions import AbortedTransaction
from penstock.errors import StorageError
from system_calls import Refusals

# Three aborts that Apache Kafka 4.3 has written.
VECTOR = bytes.fromhex(
    "0000 0000000000000007 0000000000000002 0000000000000004 0000000000000000"
    "0000 0000000000000006 0000000000000001 0000000000000005 0000000000000000"
    "0000 0000000000000005 0000000000000000 0000000000000007 0000000000000006"
)
THREE = [AbortedTransaction(7, 2, 4, 0), AbortedTransaction(6, 1, 5, 0), AbortedTransaction(5, 0, 7, 6)]


def files(directory: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in directory.iterdir()}


def loaded(directory: Path) -> AbortedIndex:
    index = AbortedIndex(str(directory))
    index.load()
    return index


def test_files_are_those_of_apache_kafka(tmp_path: Path) -> None:
    index = AbortedIndex(str(tmp_path))
    for entry in THREE:
        index.add(entry, [0])
    index.sync([0])
    [path] = tmp_path.iterdir()
    assert path.name == f"{0:020d}.txnindex"
    assert path.read_bytes() == VECTOR
    assert stat.S_IMODE(path.stat().st_mode) == 0o600, "as everything in a data directory"
    assert list(loaded(tmp_path)) == THREE


def test_which_entries_a_reader_is_told_of() -> None:
    index = AbortedIndex()
    for entry in THREE:
        index.add(entry, [0])
    assert index.overlapping(0, 8) == THREE
    assert index.overlapping(4, 8) == THREE
    assert index.overlapping(5, 8) == THREE[1:]
    assert index.overlapping(8, 9) == []
    assert index.overlapping(0, 1) == [THREE[2]]


def test_entries_follow_their_segments(tmp_path: Path) -> None:
    index = AbortedIndex(str(tmp_path))
    index.add(THREE[0], [0])
    index.add(THREE[1], [0, 5])
    index.add(THREE[2], [0, 5])
    assert files(tmp_path) == {f"{0:020d}.txnindex": 34, f"{5:020d}.txnindex": 68}
    assert list(loaded(tmp_path)) == THREE
    index.rewrite([0])  # compaction has put both together
    assert files(tmp_path) == {f"{0:020d}.txnindex": 102}
    assert list(loaded(tmp_path)) == THREE


@pytest.mark.parametrize("harm", [VECTOR[:-1], VECTOR[:34] + b"\1" + VECTOR[35:], VECTOR[:34] * 2])
def test_a_damaged_file_is_used_as_far_as_it_goes(
    tmp_path: Path, harm: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / f"{0:020d}.txnindex").write_bytes(harm)
    index = loaded(tmp_path)
    assert list(index) == THREE[: len(index)]
    assert 1 <= len(index) < 3
    index.replace_from(0, THREE, [0])
    assert list(loaded(tmp_path)) == THREE


def test_what_the_log_says_counts(tmp_path: Path) -> None:
    index = AbortedIndex(str(tmp_path))
    for entry in THREE:
        index.add(entry, [0])
    before = (tmp_path / f"{0:020d}.txnindex").stat().st_mtime_ns
    index.replace_from(5, THREE[1:], [0])  # as it is
    assert (tmp_path / f"{0:020d}.txnindex").stat().st_mtime_ns == before
    index.replace_from(5, [], [0])
    assert list(loaded(tmp_path)) == list(index) == THREE[:1]


def test_entries_below_the_start_are_forgotten() -> None:
    index = AbortedIndex()
    for entry in THREE:
        index.add(entry, [0])
    index.forget_before(5)
    assert list(index) == THREE[1:]
    index.forget_before(8)
    assert list(index) == []


@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(0, 3)), max_size=40),
    st.integers(0, 200),
    st.integers(0, 200),
)
def test_no_entry_that_is_needed_is_missing(steps: list[tuple[int, int]], offset: int, size: int) -> None:
    index, entries, end = AbortedIndex(), [], 0
    open_since: dict[int, int] = {}
    for producer, gap in steps:
        end += gap
        if producer in open_since:
            first = open_since.pop(producer)
            entry = AbortedTransaction(producer, first, end, min(open_since.values(), default=end + 1))
            entries.append(entry)
            index.add(entry, [0])
        else:
            open_since[producer] = end
        end += 1
    found = index.overlapping(offset, offset + size)
    needed = [one for one in entries if one.marker_offset >= offset and one.first_offset < offset + size]
    assert [one for one in needed if one not in found] == []


def test_half_an_entry_is_written_anew_with_the_next_one(tmp_path: Path) -> None:
    """A full disk has cut an entry in half; the next write replaces the half.

    Entries appended after the half could never be found.
    """
    index = AbortedIndex(str(tmp_path))
    index.add(THREE[0], [0])
    [path] = tmp_path.iterdir()
    path.write_bytes(VECTOR[:34] + VECTOR[34:50])
    again = loaded(tmp_path)
    assert list(again) == THREE[:1]
    again.add(THREE[1], [0])
    again.add(THREE[2], [0])
    assert path.read_bytes() == VECTOR
    assert list(loaded(tmp_path)) == THREE


def test_what_could_not_be_written_is_there_before_a_snapshot_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`sync`, which precedes a snapshot, writes the entries whose first write failed.

    A start reads the log only after the snapshot: without these entries, aborted records would be read as
    committed.
    """
    refusals = Refusals(monkeypatch)
    index = AbortedIndex(str(tmp_path))
    index.add(THREE[0], [0])
    refusals.arm(1, 1, errno.ENOSPC)
    with pytest.raises(StorageError):
        index.add(THREE[1], [0])
    refusals.disarm()
    assert list(index) == THREE[:2]
    index.sync([0])
    assert list(loaded(tmp_path)) == THREE[:2]
    refusals.arm(1, 1, errno.EIO)
    with pytest.raises(StorageError):
        index.add(THREE[2], [0, 6])
    refusals.disarm()
    index.sync([0, 6])
    assert files(tmp_path) == {f"{0:020d}.txnindex": 68, f"{6:020d}.txnindex": 34}
    assert list(loaded(tmp_path)) == THREE


def test_files_that_could_not_be_corrected_are_before_a_snapshot_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`sync`, which precedes a snapshot, writes the entries found in the log whose first write failed.

    After the snapshot a start no longer reads this part of the log.
    """
    refusals = Refusals(monkeypatch)
    index = AbortedIndex(str(tmp_path))
    refusals.arm(1, 1, errno.ENOSPC)
    with pytest.raises(StorageError):
        index.replace_from(0, THREE, [0])
    refusals.disarm()
    assert list(index) == THREE
    index.sync([0])
    assert list(loaded(tmp_path)) == THREE
