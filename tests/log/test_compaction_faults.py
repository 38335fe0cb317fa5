"""Tests of compaction with an error at every step: the log keeps the last value of every key."""

from __future__ import annotations

import errno
import gc
import os
import shutil
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from log.log_laws import T0, add
from penstock.common import operating_system
from penstock.errors import StorageError
from penstock.log.compaction import compactor as compaction
from penstock.log.compaction.compactor import CompactionPolicy, compact, plan
from penstock.log.contract import LogConfig
from penstock.log.disk.disk_log import DiskLog
from penstock.log.memory import MemoryLog
from penstock.records.batch import decode_batch, encode_batch
from penstock.records.format.batch_header import refresh_crc, split_batches
from system_calls import owner_of

ALWAYS = CompactionPolicy(min_dirty_ratio=0)
CONFIG = LogConfig(segment_bytes=700, index_interval_bytes=150, compacted=True)

State = dict[bytes, "bytes | None"]


def full_disk() -> OSError:
    return OSError(errno.ENOSPC, "No space left on device")


ERRORS: list[tuple[Callable[[], BaseException], int]] = [
    (MemoryError, 1),
    (full_disk, 2),
    (lambda: ValueError("odd"), 5),
    (KeyboardInterrupt, 7),
]
"""The exceptions that tests raise, each with a step n: of all calls, only every n-th is tested.

Each test of a call costs half a dozen copies of a directory.
"""


@pytest.fixture(autouse=True)
def no_waiting_for_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace fsync, since power cuts are tested in `test_power_cut` and thousands of flushes take long."""
    for name in ("fsync", "fdatasync"):
        monkeypatch.setattr(owner_of(name), name, lambda fd: None)


class Faults:
    """A counter of the file system calls that makes one of them raise an exception."""

    CALLS = ("pwrite", "pread", "open", "replace", "unlink", "fsync", "utime", "ftruncate", "stat", "listdir")

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self.at = -1
        self.error: Callable[[], BaseException] = MemoryError
        for name in self.CALLS:
            owner = owner_of(name)
            monkeypatch.setattr(owner, name, self._counted(getattr(owner, name)))

    def _counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            self.count += 1
            if self.count == self.at:
                raise self.error()
            return call(*args, **kwargs)

        return counted

    def arm(self, at: int, error: Callable[[], BaseException]) -> None:
        gc.disable()  # as in `Refusals.arm`
        self.count, self.at, self.error = 0, at, error

    def disarm(self) -> int:
        count, self.at = self.count, -1
        gc.enable()
        return count


def put(log: Any, *rows: tuple[bytes, bytes | None], **fields: Any) -> None:
    first = log.end_offset
    data = encode_batch(
        [(key, value, (), T0) for key, value in rows], base_offset=first, partition_leader_epoch=0, **fields
    )
    add(log, data, first=first, last=first + len(rows) - 1)


def write_history(log: Any) -> None:
    """Write several segments with repeated keys, and an active segment."""
    for turn in range(14):
        rows = [(b"k%d" % (turn * n % 9), b"%d" % turn * 12) for n in range(1, 4)]
        put(log, *rows, codec=turn % 2)
    put(log, (b"k1", None))
    log._roll(log.end_offset, T0)
    put(log, (b"last", b"1"))


def state_of(log: Any) -> State:
    """Read a log completely, and return the last value of every key."""
    data = b""
    offset = log.start_offset
    while offset < log.end_offset:
        piece = log.read(offset, 300).to_bytes()
        offset = last_offset_of(piece) + 1
        data += piece
    rows = [row for start, end, _ in split_batches(data) for row in decode_batch(data, start, end, "t", 0)]
    assert [row.offset for row in rows] == sorted({row.offset for row in rows})
    return {row.key: row.value for row in rows if row.key is not None}


def last_offset_of(data: bytes) -> int:
    start = [start for start, _, _ in split_batches(data)][-1]
    return int(struct.unpack_from(">q", data, start)[0] + struct.unpack_from(">i", data, start + 23)[0])


def check_nothing_lost(log: DiskLog, expected: State, scratch: Path) -> None:
    """Check a log's values as it is, after a crash at this point, and after an undisturbed compaction."""
    assert state_of(log) == expected
    if scratch.exists():
        shutil.rmtree(scratch)
    shutil.copytree(log.directory, scratch)
    again = DiskLog(str(scratch), CONFIG, now_ms=T0)
    assert not again.recovery.reason
    assert state_of(again) == expected
    assert not [name for name in os.listdir(scratch) if name.endswith((".swap", ".cleaned"))]
    compact(log, ALWAYS, now_ms=T0)
    assert state_of(log) == expected
    assert not [name for name in os.listdir(log.directory) if name.endswith((".swap", ".cleaned"))]
    shutil.rmtree(scratch)
    shutil.copytree(log.directory, scratch)
    assert state_of(DiskLog(str(scratch), CONFIG, now_ms=T0)) == expected


def compacted(log: DiskLog) -> bool:
    """Run and finish a compaction as the broker does; return True if it replaced the old segments."""
    work = plan(log, ALWAYS, T0)
    assert work is not None
    try:
        work.run()
    except BaseException:
        assert not work.is_complete
        assert not work.finish(), "what did not run to its end replaces nothing"
        raise
    return work.finish()


@pytest.fixture
def fresh(tmp_path: Path) -> Callable[[], DiskLog]:
    write_history(DiskLog(str(tmp_path / "t-0"), CONFIG, now_ms=T0))

    def make() -> DiskLog:
        place = tmp_path / "copy-0"
        if place.exists():
            shutil.rmtree(place)
        shutil.copytree(tmp_path / "t-0", place)
        return DiskLog(str(place), CONFIG, now_ms=T0)

    return make


@pytest.mark.parametrize(("error", "stride"), ERRORS, ids=["memory", "disk full", "value", "interrupt"])
def test_an_error_in_any_call_to_the_system_loses_nothing(
    fresh: Callable[[], DiskLog],
    error: Callable[[], BaseException],
    stride: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expected = state_of(fresh())
    faults = Faults(monkeypatch)
    log = fresh()
    faults.arm(-1, error)
    assert compacted(log)
    calls = faults.disarm()
    assert calls > 30
    check_nothing_lost(log, expected, tmp_path / "crash")
    raised = 0
    steps = range(1, calls + 1, stride)
    for at in steps:
        log = fresh()
        faults.arm(at, error)
        try:
            compacted(log)
        except (StorageError, type(error())):
            raised += 1
        finally:
            faults.disarm()
        check_nothing_lost(log, expected, tmp_path / "crash")
    assert raised > len(steps) // 2


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # raised in finalizers, too
def test_memory_that_runs_out_in_any_function_loses_nothing(
    fresh: Callable[[], DiskLog], tmp_path: Path
) -> None:
    """MemoryError is raised at the entry of each function of the log and the record formats in turn."""
    expected = state_of(fresh())
    count = 0
    at = -1

    def trace(frame: Any, event: str, _: Any) -> None:
        nonlocal count
        name = frame.f_code.co_filename
        if event == "call" and ("/penstock/log/" in name or "/penstock/records/" in name):
            count += 1
            if count == at:
                raise MemoryError

    def run(log: DiskLog) -> None:
        nonlocal count
        count = 0
        before = sys.gettrace()
        sys.settrace(trace)
        try:
            compacted(log)
        finally:
            sys.settrace(before)

    run(fresh())
    calls = count
    raised = 0
    for at in range(1, calls + 1, max(calls // 80, 1)):  # noqa: B007  read by `trace`
        log = fresh()
        try:
            run(log)
        except MemoryError:
            raised += 1
        check_nothing_lost(log, expected, tmp_path / "crash")
    assert raised > 50


def test_what_was_written_but_cannot_be_read_back_replaces_nothing(
    fresh: Callable[[], DiskLog], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The test simulates a disk that loses or changes written data."""
    expected = state_of(fresh())
    pwrite = operating_system.pwrite

    def half(fd: int, data: bytes, position: int) -> int:
        pwrite(fd, bytes(data)[: len(data) // 2] + bytes(len(data) - len(data) // 2), position)
        return len(data)

    log = fresh()
    work = plan(log, ALWAYS, T0)
    assert work is not None
    monkeypatch.setattr(operating_system, "pwrite", half)
    with pytest.raises(StorageError, match=r"checksum|read back|damaged"):
        work.run()
    monkeypatch.undo()
    assert not work.finish()
    check_nothing_lost(log, expected, tmp_path / "crash")


@pytest.mark.parametrize("at", [61, 8], ids=["a record", "a length"])
def test_a_damaged_segment_is_not_compacted(fresh: Callable[[], DiskLog], at: int) -> None:
    """A flipped bit in a key could remove another key's record; one in a length, all records after it."""
    log = fresh()
    with open(f"{log.directory}/{0:020d}.log", "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1]))
    before = {name: (Path(log.directory) / name).read_bytes() for name in os.listdir(log.directory)}
    with pytest.raises(StorageError, match="damaged"):
        compact(log, ALWAYS, now_ms=T0)
    assert {name: (Path(log.directory) / name).read_bytes() for name in os.listdir(log.directory)} == before


def hostile(kind: str, first: int) -> bytes:
    """Return a batch with impossible contents, such as wrong offsets, but a correct CRC.

    It has a record with key k1.
    """
    data = bytearray(encode_batch([(b"k1", b"odd", (), T0), (b"k2", b"odd", (), T0 + 5)], base_offset=first))
    if kind == "times":  # base timestamp 2^63 - 1, deltas on top
        struct.pack_into(">q", data, 27, (1 << 63) - 1)
    elif kind == "offsets":  # the last record claims an offset far behind all others
        data = bytearray(encode_batch([(b"k1", b"odd", (), T0)], base_offset=first, offset_deltas=[1 << 20]))
        struct.pack_into(">i", data, 23, 1)
    else:
        data[61:] = b"\xff" * (len(data) - 61)
    struct.pack_into(">i", data, 12, 0)
    refresh_crc(data, 0, len(data))
    return bytes(data)


@pytest.mark.parametrize("kind", ["times", "offsets", "garbage"])
@pytest.mark.parametrize("on_disk", [True, False], ids=["disk", "memory"])
def test_a_batch_that_makes_no_sense_stays_and_the_rest_is_compacted(
    kind: str, on_disk: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log: Any = DiskLog(str(tmp_path / "t-0"), CONFIG, now_ms=T0) if on_disk else MemoryLog(CONFIG, now_ms=T0)
    put(log, (b"k1", b"old"), (b"k3", b"old"))
    odd = hostile(kind, log.end_offset)
    add(log, odd, first=log.end_offset, last=log.end_offset + 1)
    for turn in range(20):
        put(log, (b"k1", b"new %d" % turn), (b"k2", None))
    put(log, (b"k4", b"only"))
    log._roll(log.end_offset, T0)
    put(log, (b"last", b"1"))
    before = log.size_bytes
    assert compact(log, ALWAYS, now_ms=T0)
    assert log.size_bytes < before / 2
    assert "records make no sense" in caplog.text
    data = log.read(0, 1 << 20).to_bytes()
    batches = [bytes(data[start:end]) for start, end, _ in split_batches(data)]
    assert odd in batches
    rows = [
        row
        for each in batches
        if each != odd
        for row in decode_batch(each, 0, len(each), "t", 0, verify=True)
    ]
    kept = {row.key: row.value for row in rows}
    assert kept == {b"k1": b"new 19", b"k2": None, b"k3": b"old", b"k4": b"only", b"last": b"1"}


def test_a_horizon_beyond_all_numbers_is_the_last_there_is(tmp_path: Path) -> None:
    """With `delete.retention.ms` at 2^63 - 1, compaction keeps tombstones permanently."""
    log = DiskLog(str(tmp_path / "t-0"), CONFIG, now_ms=T0)
    put(log, (b"k1", b"x"), (b"k1", None))
    put(log, (b"k2", b"x"))
    log._roll(log.end_offset, T0)
    policy = CompactionPolicy(min_dirty_ratio=0, delete_retention_ms=(1 << 63) - 1)
    assert compact(log, policy, now_ms=T0)
    assert state_of(log) == {b"k1": None, b"k2": b"x"}


def test_an_index_that_waits_without_its_log_is_removed(tmp_path: Path) -> None:
    log = DiskLog(str(tmp_path / "t-0"), CONFIG, now_ms=T0)
    write_history(log)
    expected = state_of(log)
    log.close()
    other = DiskLog(str(tmp_path / "u-0"), CONFIG._replace(segment_bytes=1 << 20), now_ms=T0)
    write_history(other)
    other.close()
    for suffix in (".index", ".timeindex"):
        shutil.copy(tmp_path / "u-0" / f"{0:020d}{suffix}", tmp_path / "t-0" / f"{0:020d}{suffix}.swap")
    again = DiskLog(str(tmp_path / "t-0"), CONFIG, now_ms=T0)
    assert not list((tmp_path / "t-0").glob("*.swap"))
    assert state_of(again) == expected


def test_a_damaged_result_of_compaction_replaces_nothing_at_a_start(tmp_path: Path) -> None:
    log = DiskLog(str(tmp_path / "t-0"), CONFIG, now_ms=T0)
    write_history(log)
    log.close()
    names = sorted(path.name for path in (tmp_path / "t-0").glob("*.log"))
    data = bytearray((tmp_path / "t-0" / names[0]).read_bytes())
    (tmp_path / "t-0" / f"{names[0]}.swap").write_bytes(data[:-7])
    with pytest.raises(StorageError, match="what compaction left"):
        DiskLog(str(tmp_path / "t-0"), CONFIG, now_ms=T0)
    assert sorted(path.name for path in (tmp_path / "t-0").glob("*.log")) == names


def test_the_compiled_scan_that_cannot_be_had_ends_the_compaction(
    fresh: Callable[[], DiskLog], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def failing() -> Any:
        raise MemoryError

    expected = state_of(fresh())
    monkeypatch.setattr(compaction, "FAST_FROM_BYTES", 0)
    monkeypatch.setattr(compaction, "fast_scanner", failing)
    log = fresh()
    with pytest.raises(MemoryError):
        compacted(log)
    monkeypatch.undo()
    check_nothing_lost(log, expected, tmp_path / "crash")
