"""Tests of log compaction: Kafka's rules decide which records remain, after any crash and for any reader."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from log.log_laws import T0, add, batch
from penstock.common import operating_system
from penstock.errors import StorageError
from penstock.log.compaction import compactor as compaction
from penstock.log.compaction.compactor import CompactionPolicy, Kept, compact, find_dirt, plan
from penstock.log.compaction.transactions import Aborted
from penstock.log.contract import LogConfig
from penstock.log.disk.disk_log import DiskLog
from penstock.log.memory import MemoryLog
from penstock.records.batch import decode_batch, encode_batch
from penstock.records.format.batch_header import read_header, split_batches

ALWAYS = CompactionPolicy(min_dirty_ratio=0, delete_retention_ms=1000)
SMALL = LogConfig(segment_bytes=400)

Row = tuple["bytes | None", "bytes | None"]


@pytest.fixture(params=["memory", "disk"])
def make_log(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Any]:
    def make(config: LogConfig = SMALL) -> Any:
        if request.param == "memory":
            return MemoryLog(config, now_ms=T0)
        return DiskLog(str(tmp_path / "t-0"), config, now_ms=T0)

    return make


def put(log: Any, *rows: Row, codec: int = 0, time_ms: int = T0, **fields: Any) -> int:
    """Append a batch of (key, value) records to a log; return its first offset."""
    first = log.end_offset
    data = encode_batch(
        [(key, value, [("h", b"x")], time_ms + n) for n, (key, value) in enumerate(rows)],
        base_offset=first,
        codec=codec,
        partition_leader_epoch=0,
        **fields,
    )
    add(log, data, first=first, last=first + len(rows) - 1, timestamp=time_ms + len(rows) - 1, now_ms=time_ms)
    return int(first)


def contents(log: Any, start: int | None = None) -> list[tuple[int, bytes | None, bytes | None]]:
    data = log.read(log.start_offset if start is None else start, 1 << 30).to_bytes()
    found = []
    for begin, end, _ in split_batches(data):
        found += [(r.offset, r.key, r.value) for r in decode_batch(data, begin, end, "t", 0)]
    return found


def headers(log: Any) -> list[Any]:
    data = log.read(log.start_offset, 1 << 30).to_bytes()
    return [read_header(data, begin) for begin, _, _ in split_batches(data)]


def roll(log: Any) -> None:
    """Roll the active segment, so that compaction may process its records."""
    log._roll(log.end_offset, T0)


def test_the_last_record_of_every_key_stays_with_its_offset(make_log: Callable[..., Any]) -> None:
    log = make_log()
    put(log, (b"a", b"1"), (b"b", b"1"), (b"a", b"2"))
    put(log, (b"c", b"1"), (b"b", b"2"))
    put(log, (b"a", b"3"))
    roll(log)
    put(log, (b"c", b"2"))
    assert compact(log, ALWAYS, now_ms=T0)
    # The growing segment is not looked at: its c replaces nothing yet.
    assert contents(log) == [(3, b"c", b"1"), (4, b"b", b"2"), (5, b"a", b"3"), (6, b"c", b"2")]
    assert (log.start_offset, log.end_offset, log.cleaned_to) == (0, 7, 6)
    assert not compact(log, ALWAYS, now_ms=T0), "nothing new, nothing to do"


@pytest.mark.parametrize("codec", range(5))
def test_batches_keep_their_ends_times_and_producers(make_log: Callable[..., Any], codec: int) -> None:
    log = make_log(LogConfig(segment_bytes=10_000))
    rows = [(b"k%d" % n, b"v" * 30) for n in range(10)]
    put(log, *rows, codec=codec, producer_id=7, producer_epoch=2, base_sequence=5)
    put(log, *rows[:9], codec=codec)
    roll(log)
    put(log, (b"z", b""))
    assert compact(log, ALWAYS, now_ms=T0)
    (cut, *_) = headers(log)
    assert (cut.base_offset, cut.last_offset, cut.record_count) == (0, 9, 1)
    assert (cut.producer_id, cut.producer_epoch, cut.base_sequence, cut.last_sequence) == (7, 2, 5, 14)
    assert (cut.codec, cut.base_timestamp, cut.max_timestamp) == (codec, T0, T0 + 9)
    data = log.read(0, 1).to_bytes()
    (row,) = decode_batch(data, 0, len(data), "t", 0)
    assert (row.offset, row.key, row.timestamp, list(row.headers)) == (9, b"k9", T0 + 9, [("h", b"x")])


def test_tombstones_are_kept_for_their_time_then_go(make_log: Callable[..., Any]) -> None:
    log = make_log()
    put(log, (b"a", b"1"), (b"b", b"1"))
    put(log, (b"a", None))
    roll(log)
    put(log, (b"x", b"1"))
    assert compact(log, ALWAYS, now_ms=T0)
    assert contents(log)[:2] == [(1, b"b", b"1"), (2, b"a", None)]
    noted = [header for header in headers(log) if header.has_delete_horizon]
    assert [header.base_timestamp for header in noted] == [T0 + 1000]
    assert noted[0].max_timestamp == T0
    data = log.read(2, 1).to_bytes()
    assert decode_batch(data, 0, len(data), "t", 0)[0].timestamp == T0, "records keep their times"
    # Not yet, although the log is compacted again.
    roll(log)
    put(log, (b"y", b"1"))
    assert compact(log, ALWAYS, now_ms=T0 + 999)
    assert (2, b"a", None) in contents(log)
    roll(log)
    put(log, (b"z", b"1"))
    assert compact(log, ALWAYS, now_ms=T0 + 1000)
    assert [key for _, key, _ in contents(log)] == [b"b", b"x", b"y", b"z"]


def test_the_last_batch_of_a_producer_stays_without_records(make_log: Callable[..., Any]) -> None:
    log = make_log(LogConfig(segment_bytes=10_000))
    put(log, (b"a", b"1"), producer_id=7, producer_epoch=0, base_sequence=0)
    put(log, (b"a", b"2"), producer_id=7, producer_epoch=0, base_sequence=1)
    put(log, (b"a", b"3"))
    roll(log)
    put(log, (b"z", b""))
    assert compact(log, ALWAYS, now_ms=T0, kept=Kept({7: 1}))
    assert contents(log) == [(2, b"a", b"3"), (3, b"z", b"")]
    empty = headers(log)[0]
    assert (empty.base_offset, empty.last_offset, empty.record_count) == (1, 1, 0)
    assert (empty.producer_id, empty.last_sequence) == (7, 1)
    assert contents(log, start=0) == contents(log)


def test_what_was_aborted_goes_and_its_marker_stays(make_log: Callable[..., Any]) -> None:
    log = make_log(LogConfig(segment_bytes=10_000))
    put(log, (b"a", b"1"))
    fields = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}
    put(log, (b"a", b"maybe"), **fields)
    put(log, (b"\0\0\0\0", b"\0\0\0\0\0\0"), **{**fields, "is_control": True, "base_sequence": -1})
    roll(log)
    put(log, (b"z", b""))
    compact(log, ALWAYS, now_ms=T0, kept=Kept(aborted=[Aborted(7, 1, 2)]))
    assert [offset for offset, _, _ in contents(log)] == [0, 2, 3]


# --- when ---------------------------------------------------------------------------------------------------


def test_how_dirty_a_log_has_to_be(make_log: Callable[..., Any]) -> None:
    log = make_log(LogConfig(segment_bytes=10_000))
    assert find_dirt(log, ALWAYS, T0) is None
    for n in range(4):
        put(log, (b"k%d" % n, b"v" * 100))
        roll(log)
    put(log, (b"z", b""))
    half = CompactionPolicy(min_dirty_ratio=0.5)
    assert compact(log, half, now_ms=T0)
    put(log, (b"new", b"v" * 100))
    roll(log)
    put(log, (b"z", b""))
    assert not compact(log, half, now_ms=T0), "a fifth or so is dirty"
    assert compact(log, CompactionPolicy(min_dirty_ratio=0.1), now_ms=T0)


def test_young_records_wait_and_old_ones_do_not(make_log: Callable[..., Any]) -> None:
    log = make_log(LogConfig(segment_bytes=10_000))
    put(log, (b"a", b"1"), time_ms=T0)
    roll(log)
    put(log, (b"a", b"2"), time_ms=T0 + 500)
    roll(log)
    put(log, (b"z", b""))
    lag = CompactionPolicy(min_dirty_ratio=0, min_lag_ms=1000)
    assert find_dirt(log, lag, T0 + 900) is None
    dirt = find_dirt(log, lag, T0 + 1200)
    assert dirt is not None
    assert dirt.end_offset == 1
    never_dirty_enough = CompactionPolicy(min_dirty_ratio=1, max_lag_ms=2000)
    assert plan(log, never_dirty_enough, T0 + 1900) is None
    assert plan(log, never_dirty_enough, T0 + 2100) is not None


def test_a_deletion_meanwhile_wins(make_log: Callable[..., Any]) -> None:
    log = make_log(LogConfig(segment_bytes=10_000))
    put(log, (b"a", b"1"))
    put(log, (b"a", b"2"))
    roll(log)
    put(log, (b"a", b"3"))
    work = plan(log, ALWAYS, T0)
    assert work is not None
    work.run()
    log.delete_before(2)
    assert not work.finish()
    assert contents(log) == [(2, b"a", b"3")]


def test_more_keys_than_fit_are_done_in_turns(make_log: Callable[..., Any]) -> None:
    log = make_log(LogConfig(segment_bytes=10_000))
    for turn in range(2):
        for n in range(10):
            put(log, (b"k%d" % n, b"%d" % turn))
    roll(log)
    put(log, (b"z", b""))
    turns = 0
    while (work := plan(log, ALWAYS, T0, keys_max=4)) is not None:
        work.run()
        assert work.finish()
        turns += 1
    assert turns > 2
    assert [value for _, key, value in contents(log) if key != b"z"] == [b"1"] * 10


# --- what it leads to, whatever was written -----------------------------------------------------------------

rows = st.tuples(st.sampled_from([b"a", b"b", b"c", b"d"]), st.none() | st.binary(max_size=3))
scripts = st.lists(
    st.tuples(st.lists(rows, min_size=1, max_size=4), st.integers(0, 4), st.booleans()),
    min_size=1,
    max_size=12,
)


@settings(max_examples=60)
@given(scripts, st.integers(0, 1))
def test_reading_everything_gives_the_same_table_as_before(
    script: Sequence[tuple[Sequence[Row], int, bool]], codec: int
) -> None:
    log = MemoryLog(LogConfig(segment_bytes=300), now_ms=T0)
    model: dict[bytes | None, bytes | None] = {}
    for batch_rows, gap, clean_now in script:
        put(log, *batch_rows, codec=codec, time_ms=T0 + gap)
        model.update(batch_rows)
        if clean_now:
            compact(log, ALWAYS, now_ms=T0 + gap)
        found = contents(log)
        table = {key: value for _, key, value in found}
        # Tombstones may be gone, values may not; and nothing old may come back.
        assert {key: value for key, value in table.items() if value is not None} == {
            key: value for key, value in model.items() if value is not None
        }
        offsets = [offset for offset, _, _ in found]
        assert offsets == sorted(set(offsets))
        for offset in range(log.start_offset, log.end_offset + 1):
            assert contents(log, offset)[-1:] == found[-1:] or offset > found[-1][0]


def test_a_large_log_is_scanned_by_compiled_loops_to_the_same_end(monkeypatch: pytest.MonkeyPatch) -> None:
    logs = []
    for fast_from_bytes in (1 << 40, 0):
        monkeypatch.setattr(compaction, "FAST_FROM_BYTES", fast_from_bytes)
        log = MemoryLog(LogConfig(segment_bytes=2000), now_ms=T0)
        for n in range(200):
            put(log, (b"k%d" % (n * n % 37), b"v" * (n % 50)), (b"t%d" % (n % 11), None if n % 3 else b""))
        assert compact(log, ALWAYS, now_ms=T0)
        logs.append(log.read(0, 1 << 30).to_bytes())
    assert logs[0] == logs[1]


# --- on disk ------------------------------------------------------------------------------------------------


def make_dirty(directory: Path) -> DiskLog:
    log = DiskLog(str(directory), LogConfig(segment_bytes=700), now_ms=T0)
    for turn in range(4):
        for n in range(5):
            put(log, (b"k%d" % n, b"%d" % turn), (b"only%d%d" % (turn, n), b"v" * 40))
    put(log, (b"z", b""))
    return log


def table_of(log: Any) -> dict[bytes | None, bytes | None]:
    return {key: value for _, key, value in contents(log)}


def test_a_reader_that_is_under_way_reads_on(tmp_path: Path) -> None:
    log = make_dirty(tmp_path / "t-0")
    before = log.read(0, 1 << 20)
    size = len(before)
    assert compact(log, ALWAYS, now_ms=T0)
    assert len(before.to_bytes()) == size
    assert log.size_bytes < size


def test_a_compacted_log_opens_again_cleanly_or_not(tmp_path: Path) -> None:
    log = make_dirty(tmp_path / "t-0")
    assert compact(log, ALWAYS, now_ms=T0)
    found, end = contents(log), log.end_offset
    assert [name for name in os.listdir(tmp_path / "t-0") if name.endswith((".cleaned", ".swap"))] == []
    log.close()
    for clean in (True, False):
        again = DiskLog(str(tmp_path / "t-0"), now_ms=T0, clean_shutdown=clean)
        assert (contents(again), again.end_offset, again.recovery.bytes_cut) == (found, end, 0)
        for offset, _, _ in found:
            assert contents(again, offset)[0][0] <= offset
        again.close()


def test_a_crash_at_any_moment_leaves_one_log_or_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test copies the directory after each change, and opens each copy as after a crash."""
    log = make_dirty(tmp_path / "t-0")
    wanted, end = table_of(log), log.end_offset
    moments = 0

    def watched(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal moments
            result = function(*args, **kwargs)
            copy = tmp_path / f"copy{moments}"
            shutil.copytree(tmp_path / "t-0", copy)
            moments += 1
            return result

        return call

    for name in ("replace", "unlink", "ftruncate"):
        monkeypatch.setattr(os, name, watched(getattr(os, name)))
    assert compact(log, ALWAYS, now_ms=T0)
    monkeypatch.undo()
    assert moments > 5
    for number in range(moments):
        crashed = DiskLog(str(tmp_path / f"copy{number}"), now_ms=T0)
        assert table_of(crashed) == wanted, number
        assert crashed.end_offset == end
        assert crashed.recovery.bytes_cut == 0
        crashed.close()


def test_a_full_disk_leaves_the_log_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = make_dirty(tmp_path / "t-0")
    found = contents(log)

    def full(*args: Any) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(operating_system, "pwrite", full)
        with pytest.raises(StorageError, match="disk is full"):
            compact(log, ALWAYS, now_ms=T0)
    assert contents(log) == found
    assert not [name for name in os.listdir(tmp_path / "t-0") if "cleaned" in name]
    assert compact(log, ALWAYS, now_ms=T0)


def test_a_damaged_segment_is_reported_and_left_alone(tmp_path: Path) -> None:
    log = make_dirty(tmp_path / "t-0")
    with open(tmp_path / "t-0" / "00000000000000000000.log", "r+b") as file:
        file.seek(70)
        file.write(b"\xff" * 40)
    with pytest.raises(StorageError, match=r"cannot be compacted|damaged"):
        compact(log, ALWAYS, now_ms=T0)


def test_batches_of_the_past_stay_whole_or_go(tmp_path: Path) -> None:
    from log.log_laws import message

    log = MemoryLog(LogConfig(segment_bytes=10_000), now_ms=T0)
    data = message(0, b"unkeyed")
    add(log, data, first=0, last=0)
    add(log, batch(1, [T0], value=b"v"), first=1, last=1)
    add(log, batch(2, [T0], value=b"v"), first=2, last=2)
    roll(log)
    add(log, batch(3, [T0]), first=3, last=3)
    assert compact(log, ALWAYS, now_ms=T0)
    assert [entry.last_offset for entry in log.entries()] == [1, 2, 3]
