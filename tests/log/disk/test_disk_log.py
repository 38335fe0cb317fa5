"""Tests of logs on disk: crashes, damaged files, full disks, and files that others have written."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from log.log_laws import SMALL, T0, add, batch, cut, fill, message, read_all
from penstock.common import operating_system
from penstock.errors import StorageError
from penstock.log import DiskLog, LogConfig
from penstock.log.contract import FileRegion
from penstock.log.segments.index import OffsetIndex
from penstock.log.walk import walk_buffer


def open_log(path: Path, config: LogConfig = SMALL, **options: Any) -> DiskLog:
    return DiskLog(str(path), config, now_ms=T0, **options)


def names(path: Path, suffix: str = "") -> list[str]:
    return sorted(child.name for child in path.iterdir() if child.name.endswith(suffix))


def last_log_file(path: Path) -> Path:
    return path / names(path, ".log")[-1]


# --- the files ----------------------------------------------------------------------------------------


def test_the_directory_is_laid_out_as_kafka_lays_it_out(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0")
    made = fill(log, 20)
    log.close()
    per_segment = 1000 // len(made[0])
    bases = list(range(0, 60, 3 * per_segment))
    assert names(tmp_path / "t-0") == sorted(
        [f"{base:020d}{suffix}" for base in bases for suffix in (".log", ".index", ".timeindex")]
        + ["leader-epoch-checkpoint"]
    )
    assert (tmp_path / "t-0" / "leader-epoch-checkpoint").read_text() == "0\n1\n0 0\n"
    stored = b"".join((tmp_path / "t-0" / f"{base:020d}.log").read_bytes() for base in bases)
    assert stored == b"".join(made)


@pytest.mark.parametrize("end", [DiskLog.close, DiskLog.abandon])
def test_a_log_that_is_closed_takes_nothing_more(tmp_path: Path, end: Callable[[DiskLog], None]) -> None:
    """A closed log of a stopped broker must not write into files that its successor writes."""
    path = tmp_path / "t-0"
    log = open_log(path)
    fill(log, 3)
    end(log)
    after = open_log(path)
    fill(after, 2)
    contents = last_log_file(path).read_bytes()
    for change in (lambda: fill(log, 1), lambda: log.truncate_to(0)):
        with pytest.raises(StorageError, match="is closed"):
            change()
    assert last_log_file(path).read_bytes() == contents
    fill(after, 1)
    after.close()


def test_index_entries_say_what_kafkas_dump_tool_checks(tmp_path: Path) -> None:
    """`kafka-dump-log --deep-iteration` requires, for example, that an entry has its batch's last offset."""
    rng = random.Random(5)
    log = open_log(tmp_path / "t-0", LogConfig(segment_bytes=4000, index_interval_bytes=300))
    offset = 0
    for _ in range(200):
        pieces, first = b"", offset
        for _ in range(rng.choice((1, 1, 3))):
            times = [T0 + rng.randrange(10_000) for _ in range(rng.randrange(1, 4))]
            pieces += batch(offset, times)
            offset += len(times)
        latest = max(entry.max_timestamp for entry in walk_buffer(pieces))
        add(log, pieces, first=first, last=offset - 1, timestamp=latest)
    log.close()
    assert len(names(tmp_path / "t-0", ".log")) > 3
    for name in names(tmp_path / "t-0", ".log"):
        base = int(name[:20])
        data = (tmp_path / "t-0" / name).read_bytes()
        entries = {entry.position: entry for entry in walk_buffer(data)}
        index = (tmp_path / "t-0" / name.replace(".log", ".index")).read_bytes()
        assert index
        positions = []
        for at in range(0, len(index), 8):
            relative, position = (int.from_bytes(index[at + n : at + n + 4], "big") for n in (0, 4))
            assert entries[position].last_offset == base + relative
            positions.append(position)
        assert all(b - a > 300 for a, b in zip([0, *positions], positions, strict=False))
        times_index = (tmp_path / "t-0" / name.replace(".log", ".timeindex")).read_bytes()
        seen = -1
        for at in range(0, len(times_index), 12):
            timestamp = int.from_bytes(times_index[at : at + 8], "big")
            last = base + int.from_bytes(times_index[at + 8 : at + 12], "big")
            assert timestamp > seen
            seen = timestamp
            assert [e.max_timestamp for e in entries.values() if e.last_offset == last] == [timestamp]
        assert seen == max(entry.max_timestamp for entry in entries.values())


def test_a_clean_restart_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "t-0"
    log = open_log(path)
    fill(log, 20)
    log.close()
    before = {name: ((path / name).read_bytes(), (path / name).stat().st_mtime_ns) for name in names(path)}
    log = open_log(path, clean_shutdown=True)
    assert log.recovery == (0, 0, 0, "")
    assert log.recovery_point == log.end_offset == 60
    log.close()
    assert {n: ((path / n).read_bytes(), (path / n).stat().st_mtime_ns) for n in names(path)} == before


def test_index_entries_reach_the_disk_by_the_page(tmp_path: Path) -> None:
    path = tmp_path / "t-0"
    log = open_log(path, LogConfig(index_interval_bytes=1))
    for n in range(513):
        add(log, batch(n), first=n, last=n)
        assert bool((path / f"{0:020d}.index").stat().st_size) == (n >= 512)
    assert (path / f"{0:020d}.index").stat().st_size == 4096


def test_a_full_index_ends_the_segment(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", LogConfig(segment_index_bytes=80, index_interval_bytes=1))
    for n in range(30):
        add(log, batch(n, [T0 + n]), first=n, last=n, timestamp=T0 + n)
    log.close()
    sizes = [(tmp_path / "t-0" / name).stat().st_size for name in names(tmp_path / "t-0", "index")]
    assert max(sizes) <= 80
    assert len(names(tmp_path / "t-0", ".log")) > 3
    log = open_log(
        tmp_path / "t-0", LogConfig(segment_index_bytes=80, index_interval_bytes=1), clean_shutdown=True
    )
    assert log.offset_for_timestamp(T0 + 17) == (17, T0 + 17)


LARGE = b"v" * 2000
"""A value so large that the log does not read a batch with three of them in one read."""


def test_reads_are_regions_of_files(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", LogConfig(segment_bytes=45_000))
    made = fill(log, 20, value=LARGE)
    pieces = log.read(4, 1 << 20).pieces
    assert len(pieces) > 2
    assert all(isinstance(piece, FileRegion) for piece in pieces)
    first = pieces[0]
    assert isinstance(first, FileRegion)
    assert first.position == len(made[0])
    assert os.pread(first.file.fileno(), first.size, first.position) == first.read()
    assert "position" in repr(first)
    assert "bytes in" in repr(log.read(0, 10))


def open_files(path: Path) -> int:
    targets = []
    for fd in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            targets.append(os.readlink(f"/proc/self/fd/{fd}"))
    return sum(target.startswith(str(path)) for target in targets)


def test_files_close_with_their_last_reader(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", LogConfig())
    assert open_files(tmp_path) == 0  # an idle partition costs no descriptor
    fill(log, 5, value=LARGE)
    region = log.read(0, 100).pieces[0]
    assert isinstance(region, FileRegion)
    assert open_files(tmp_path) == 1
    log.close()
    assert open_files(tmp_path) == 1
    del log
    assert len(region.read()) == len(region)
    del region
    assert open_files(tmp_path) == 0


def test_no_more_files_are_open_than_are_in_use(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", LogConfig(segment_bytes=14_000))
    made = fill(log, 40, value=LARGE)
    assert len(names(tmp_path / "t-0", ".log")) > 10
    assert open_files(tmp_path) == 1
    held = [log.read(offset, 10) for offset in (1, 2, 3, 40)]
    assert open_files(tmp_path) == 3
    assert read_all(log) == b"".join(made)
    assert log.offset_for_timestamp(T0 + 500) == (50, T0 + 500)
    assert len(list(log.iter_batch_headers())) == 40
    log.pending_flush().sync()
    assert open_files(tmp_path) == 3
    assert [one.to_bytes() for one in held] == [made[0], made[0], made[1], made[13]]
    held.clear()
    assert open_files(tmp_path) == 1
    log.truncate_to(30)
    fill(log, 2, value=LARGE)
    assert open_files(tmp_path) == 1
    log.close()
    assert open_files(tmp_path) == 0
    log = open_log(tmp_path / "t-0", LogConfig(segment_bytes=14_000))
    assert open_files(tmp_path) == 0


def test_flush_forces_files_and_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []

    def note(fd: int) -> None:
        synced.append(os.path.basename(os.readlink(f"/proc/self/fd/{fd}")))

    monkeypatch.setattr(operating_system, "fdatasync", note)
    monkeypatch.setattr(os, "fsync", note)
    log = open_log(tmp_path / "t-0")
    made = fill(log, 20)
    files = names(tmp_path / "t-0", ".log")
    pending = log.pending_flush(sealed_only=True)
    pending.sync()
    log.flushed(pending)
    assert synced == [*files[:-1], "t-0", tmp_path.name]
    assert log.recovery_point == int(files[-1][:20])
    synced.clear()
    log.flush()
    assert synced == [files[-1], "t-0"]
    assert log.recovery_point == 60
    synced.clear()
    add(log, batch(60), first=60, last=60)
    log.flush()
    assert synced[0] == last_log_file(tmp_path / "t-0").name
    assert read_all(log, 0, 1 << 20).startswith(b"".join(made))


# --- crashes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("clean", [False, True])
def test_a_log_torn_at_any_byte_opens_with_what_is_whole(
    tmp_path: Path, clean: bool, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "t-0"
    log = open_log(path, LogConfig(index_interval_bytes=1))
    made = [batch(0), message(1, b"xy"), batch(2, [T0 + 1, T0 + 5]), message(4, b"", magic=0), batch(5)]
    for n, (one, last) in enumerate(zip(made, (0, 1, 3, 4, 5), strict=True)):
        add(log, one, first=log.end_offset, last=last, timestamp=T0 + n)
    log.close()
    whole = b"".join(made)
    ends = [sum(map(len, made[:n])) for n in range(len(made) + 1)]
    after = (0, 1, 2, 4, 5, 6)
    file = last_log_file(path)
    keep = {name: (path / name).read_bytes() for name in names(path)}
    for size in range(0, len(whole) + 1, 7 if clean else 1):
        for name, data in keep.items():
            (path / name).write_bytes(data)
        os.truncate(file, size)
        caplog.clear()
        log = open_log(path, clean_shutdown=clean)
        count = max(n for n, end in enumerate(ends) if end <= size)
        assert file.stat().st_size == ends[count]
        assert log.end_offset == after[count]
        assert read_all(log) == whole[: ends[count]]
        assert log.recovery.bytes_cut == size - ends[count]
        assert bool(log.recovery.reason) == bool(log.recovery.bytes_cut)
        assert str(path) in caplog.text or not log.recovery.bytes_cut
        first = log.end_offset
        add(log, batch(first), first=first, last=first)
        assert cut(read_all(log))[-1] == batch(first)
        log.close()


def test_a_damaged_byte_cuts_the_log_before_its_batch(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "t-0"
    log = open_log(path, LogConfig(segment_bytes=400))
    made = fill(log, 12, value=b"v")
    log.close()
    keep = {name: (path / name).read_bytes() for name in names(path)}
    whole = b"".join(made)
    files = names(path, ".log")
    starts = [0]
    for name in files:
        starts.append(starts[-1] + len(keep[name]))
    ends = [sum(map(len, made[:n])) for n in range(len(made) + 1)]
    for at in range(0, len(whole), 5):
        within = at - max(end for end in ends if end <= at)
        if within < 8 or 12 <= within < 16:
            continue  # neither the base offset nor the leader epoch is under the checksum
        for name in names(path):
            (path / name).unlink()
        for name, data in keep.items():
            (path / name).write_bytes(data)
        number = max(n for n, start in enumerate(starts[:-1]) if start <= at)
        data = bytearray(keep[files[number]])
        data[at - starts[number]] ^= 0x41
        (path / files[number]).write_bytes(data)
        log = open_log(path, LogConfig(segment_bytes=400))
        count = max(n for n, end in enumerate(ends) if end <= at)
        assert read_all(log) == whole[: ends[count]], at
        assert log.end_offset == 3 * count
        assert log.recovery.segments_dropped == len(files) - number - 1
        assert log.recovery.bytes_cut == starts[number + 1] - ends[count]
        assert names(path, ".log") == files[: number + 1]
        log.close()


def test_what_lies_before_the_recovery_point_is_not_checked(tmp_path: Path) -> None:
    path = tmp_path / "t-0"
    log = open_log(path)
    fill(log, 20)
    log.close()
    first = path / names(path, ".log")[0]
    data = bytearray(first.read_bytes())
    data[-1] ^= 1
    first.write_bytes(data)
    second_base = int(names(path, ".log")[1][:20])
    log = open_log(path, recovery_point=second_base)
    assert log.end_offset == 60
    assert log.recovery.segments_checked == len(names(path, ".log")) - 1
    assert log.recovery_point == second_base
    log.close()
    log = open_log(path, recovery_point=second_base - 1)
    assert log.end_offset == second_base - 3
    assert log.recovery.segments_dropped > 0


@pytest.mark.parametrize("zeros", [1, 43, 4096, 100_000])
@pytest.mark.parametrize("clean", [False, True])
def test_zeros_at_the_end_are_cut(tmp_path: Path, zeros: int, clean: bool) -> None:
    """A preallocated file ends with zeros, as does one whose data a power failure lost."""
    path = tmp_path / "t-0"
    log = open_log(path, LogConfig())
    made = fill(log, 5)
    log.close()
    with last_log_file(path).open("ab") as file:
        file.write(bytes(zeros))
    log = open_log(path, LogConfig(), clean_shutdown=clean)
    assert read_all(log) == b"".join(made)
    assert log.recovery.bytes_cut == zeros


@pytest.mark.parametrize("clean", [False, True])
def test_garbage_at_the_end_is_cut(tmp_path: Path, clean: bool) -> None:
    path = tmp_path / "t-0"
    log = open_log(path, LogConfig())
    made = fill(log, 5)
    log.close()
    with last_log_file(path).open("ab") as file:
        file.write(random.Random(1).randbytes(5000))
    log = open_log(path, LogConfig(), clean_shutdown=clean)
    assert read_all(log) == b"".join(made)
    assert log.recovery.bytes_cut == 5000
    assert "position" in log.recovery.reason


def test_batches_larger_than_what_recovery_reads_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "t-0"
    log = open_log(path, LogConfig())
    made = [batch(0), batch(1, value=os.urandom(3 << 20)), batch(2), batch(3, value=os.urandom(2 << 20))]
    for n, one in enumerate(made):
        add(log, one, first=n, last=n)
    log.close()
    log = open_log(path, LogConfig())
    assert log.recovery.bytes_cut == 0
    assert read_all(log) == b"".join(made)
    log.close()
    os.truncate(last_log_file(path), sum(map(len, made)) - 1)
    log = open_log(path, LogConfig())
    assert read_all(log) == b"".join(made[:3])


def crash_states(path: Path, rng: random.Random) -> Iterator[None]:
    """Change a log's files step by step into states that a crash could leave, and yield after each."""
    yield
    file = last_log_file(path)
    os.truncate(file, rng.randrange(file.stat().st_size + 1))
    yield
    for name in names(path, "index"):
        if rng.random() < 0.5:
            (path / name).unlink()
        elif rng.random() < 0.5:
            os.truncate(path / name, rng.randrange((path / name).stat().st_size + 100))
    yield
    for name in names(path, "index"):
        (path / name).write_bytes(rng.randbytes(rng.randrange(200)))
    yield
    (path / "leader-epoch-checkpoint").write_text(rng.choice(["", "0\n1\n", "x"]))
    yield


@pytest.mark.parametrize("seed", range(4))
def test_a_crash_at_any_moment_leaves_a_prefix(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    config = LogConfig(segment_bytes=1500, index_interval_bytes=rng.choice((1, 200)))
    path, crashed = tmp_path / "t-0", tmp_path / "crashed"
    log = open_log(path, config)
    made: list[bytes] = []
    for round_number in range(12):
        made += fill(log, rng.randrange(1, 8), value=rng.randbytes(rng.randrange(60)))
        if rng.random() < 0.3:
            log.flush()
        safe = log.recovery_point
        shutil.copytree(path, crashed)
        for _ in crash_states(crashed, rng):
            again = open_log(crashed, config, recovery_point=0 if round_number % 2 else safe)
            data = read_all(again)
            assert b"".join(made).startswith(data)
            assert again.end_offset == 3 * len(cut(data))
            for offset in range(0, again.end_offset, 3):
                assert cut(read_all(again, offset, 1)) == [made[offset // 3]]
                wanted = T0 + offset * 10
                assert again.offset_for_timestamp(wanted) == (offset, wanted)
            if again.end_offset:
                assert again.leader_epochs.entries == [(0, 0)]
            assert again.offset_for_timestamp(T0 + again.end_offset * 10) is None
            more = fill(again, 3)
            assert read_all(again, again.end_offset - 9) == b"".join(more)
            del again  # a crash, again
            shutil.rmtree(crashed)
            shutil.copytree(path, crashed)
        shutil.rmtree(crashed)


def test_killed_while_writing(tmp_path: Path) -> None:
    code = f"""
        import sys
        from log.log_laws import SMALL, batch
        from penstock.log import DiskLog
        log = DiskLog({str(tmp_path / "t-0")!r}, SMALL, now_ms=0)
        while True:
            first = log.end_offset
            log.append(batch(first), first_offset=first, last_offset=first, max_timestamp=0, now_ms=0)
            print(first, flush=True)
    """
    tests = Path(__file__).resolve().parents[1]
    writer = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(tests)},
        text=True,
    )
    assert writer.stdout is not None
    acknowledged = -1
    for line in writer.stdout:
        acknowledged = int(line)
        if acknowledged >= 300:
            break
    writer.send_signal(signal.SIGKILL)
    rest = writer.stdout.read().split("\n")
    acknowledged = max([acknowledged, *(int(line) for line in rest[:-1])])
    writer.stdout.close()
    writer.wait()
    log = open_log(tmp_path / "t-0")
    assert log.end_offset > acknowledged
    assert cut(read_all(log)) == [batch(n) for n in range(log.end_offset)]


# --- damaged indexes ----------------------------------------------------------------------------------


def damage(kind: str, path: Path) -> None:
    for file in path.glob("*index"):
        data = bytearray(file.read_bytes())
        if kind == "missing":
            file.unlink()
        elif kind == "empty":
            file.write_bytes(b"")
        elif kind == "short":
            entry = 12 if file.suffix == ".timeindex" else 8
            file.write_bytes(data[: len(data) // 2 // entry * entry])
        elif kind == "odd":
            file.write_bytes(data[:-3])
        elif kind == "positions" and file.suffix == ".index":
            for at in range(7, len(data), 8):
                data[at] ^= 1  # positions in the middle of batches, in ascending order
            file.write_bytes(data)
        elif kind == "offsets" and file.suffix == ".index":
            for at in range(3, len(data), 8):
                data[at] = max(data[at] - 3, 0)  # each entry one batch too early
            file.write_bytes(data)
        elif kind == "preallocated":
            file.write_bytes(data + bytes(1200))


@pytest.mark.parametrize("kind", ["missing", "empty", "short", "odd", "positions", "offsets", "preallocated"])
def test_damaged_indexes_cost_a_walk_and_no_wrong_answer(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "t-0"
    config = LogConfig(segment_bytes=2000, index_interval_bytes=150)
    log = open_log(path, config)
    made = fill(log, 60)
    log.close()
    good = {name: (path / name).read_bytes() for name in names(path, "index")}
    damage(kind, path)
    log = open_log(path, config, clean_shutdown=True)
    assert (log.end_offset, log.recovery.bytes_cut) == (180, 0)
    assert log.offset_of_max_timestamp() == (179, T0 + 1790)
    for offset in (0, 100, 179, 50, 3, 4):
        assert read_all(log, offset) == b"".join(made[offset // 3 :])
        assert cut(read_all(log, offset, 350)) == made[offset // 3 :][:2]
        assert log.offset_for_timestamp(T0 + offset * 10) == (offset, T0 + offset * 10)
    made += fill(log, 5)
    assert read_all(log) == b"".join(made)
    log.truncate_to(90)
    assert read_all(log) == b"".join(made[:30])
    log.close()
    if kind in ("missing", "odd"):
        first = names(path, ".index")[0]
        assert (path / first).read_bytes() == good[first]


def test_an_index_that_lies_is_rebuilt_and_said_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "t-0"
    log = open_log(path, LogConfig(index_interval_bytes=150))
    fill(log, 60)
    log.close()
    damage("positions", path)
    log = open_log(path, LogConfig(index_interval_bytes=150), clean_shutdown=True)
    assert "rebuilding the indexes" in caplog.text
    log.close()
    file = path / f"{0:020d}.index"
    assert len(OffsetIndex.load(str(file), 0, 1 << 30)) > 10


# --- files of others ----------------------------------------------------------------------------------


def test_kafkas_other_files_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "t-0"
    log = open_log(path)
    made = fill(log, 20)
    log.close()
    others = ["00000000000000000021.snapshot", "00000000000000000000.txnindex", "partition.metadata", "x.log"]
    for name in others:
        (path / name).write_bytes(b"?")
    log = open_log(path)
    assert read_all(log) == b"".join(made)
    assert set(others) <= set(names(path))
    log.delete_before(60)
    assert "00000000000000000000.txnindex" not in names(path)


def test_deleted_and_unfinished_files_go(tmp_path: Path) -> None:
    path = tmp_path / "t-0"
    log = open_log(path)
    made = fill(log, 20)
    log.close()
    before = names(path)
    for name in (
        "00000000000000000000.log.deleted",
        "00000000000000000000.index.deleted",
        "00000000000000000005.log.cleaned",
        "00000000000000000005.index.cleaned",
        "00000000000000000009.log.swap",  # past an unfinished one: void
        "00000000000000000999.index",  # without a log
        "00000000000000000999.timeindex",
    ):
        (path / name).write_bytes(b"?")
    log = open_log(path, clean_shutdown=True)
    assert names(path) == before
    assert read_all(log) == b"".join(made)


def test_an_interrupted_swap_is_completed(tmp_path: Path) -> None:
    path = tmp_path / "t-0"
    log = open_log(path)
    fill(log, 20)
    log.close()
    bases = [int(name[:20]) for name in names(path, ".log")]
    assert len(bases) >= 4
    # Compaction has made one segment of the second and third, with few batches left.
    second, third = bases[1], bases[3] - 3
    compacted = batch(second, [T0]) + batch(third, [T0, T0, T0], deltas=[0, 1, 2])
    (path / f"{second:020d}.log.swap").write_bytes(compacted)
    (path / f"{second:020d}.index.swap").write_bytes(b"")
    (path / f"{second:020d}.timeindex.swap").write_bytes(b"")
    first = (path / f"{0:020d}.log").read_bytes()
    rest = b"".join((path / f"{base:020d}.log").read_bytes() for base in bases[3:])
    log = open_log(path, clean_shutdown=True)
    assert [int(name[:20]) for name in names(path, ".log")] == [bases[0], bases[1], *bases[3:]]
    assert names(path, ".swap") == []
    assert read_all(log) == first + compacted + rest
    assert read_all(log, second + 1) == batch(third, [T0, T0, T0]) + rest


def test_a_log_that_ends_before_its_start_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "t-0"
    log = open_log(path)
    fill(log, 5)
    log.close()
    log = open_log(path, start_offset=100)
    assert (log.start_offset, log.end_offset, log.size_bytes) == (100, 100, 0)
    assert names(path, ".log") == [f"{100:020d}.log"]
    fill(log, 1)
    assert log.end_offset == 103


# --- failures of the system ---------------------------------------------------------------------------


class FullDisk:
    """A replacement for `pwrite` that fails with a full disk after a given number of bytes."""

    def __init__(self, room: int, number: int) -> None:
        self.room, self.number = room, number
        self._write = operating_system.pwrite

    def __call__(self, fd: int, data: bytes | memoryview, position: int) -> int:
        if self.room == 0:
            raise OSError(self.number, os.strerror(self.number))
        part = bytes(data)[: self.room]
        self.room -= len(part)
        return self._write(fd, part, position)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_what_did_not_fit_has_not_happened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    path = tmp_path / "t-0"
    log = open_log(path, LogConfig())
    made = fill(log, 3)
    size = log.size_bytes
    one = batch(9)
    real = operating_system.pwrite
    for room in range(len(one)):
        monkeypatch.setattr(operating_system, "pwrite", FullDisk(room, number))
        with pytest.raises(StorageError, match=r"cannot append to .*00\.log: the ") as caught:
            add(log, one, first=9, last=9)
        assert caught.value.errno == number
        monkeypatch.setattr(operating_system, "pwrite", real)
        assert last_log_file(path).stat().st_size == size
        assert (log.end_offset, log.size_bytes) == (9, size)
    add(log, one, first=9, last=9)
    assert read_all(log) == b"".join([*made, one])
    log.close()
    assert open_log(path).recovery.bytes_cut == 0


@pytest.mark.parametrize("batches", [0, 3])
@pytest.mark.parametrize("far", [300, 1 << 33], ids=["near", "far"])
def test_an_append_that_skips_offsets_and_fails_leaves_a_log_that_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batches: int, far: int
) -> None:
    path = tmp_path / "t-0"
    log = open_log(path)
    made = fill(log, batches)
    large = batch(far, value=b"v" * 950)  # it begins a segment
    with monkeypatch.context() as failing:
        failing.setattr(operating_system, "pwrite", FullDisk(0, errno.ENOSPC))
        failing.setattr(os, "unlink", lambda path: (_ for _ in ()).throw(OSError(errno.EIO, "no")))
        with pytest.raises(StorageError):
            add(log, large, first=far, last=far)
    first = log.end_offset
    while far < 1000 and first < far:  # as from a leader that has what the other one had compacted away
        made.append(batch(first))
        add(log, made[-1], first=first, last=first)
        first += 1
    with pytest.raises(ValueError, match="cannot follow"):
        add(log, batch(first - 1), first=first - 1, last=first - 1)
    add(log, large, first=far, last=far)
    again = open_log(path)  # after a crash
    assert (again.end_offset, log.end_offset) == (far + 1, far + 1)
    assert again.recovery.reason == ""
    assert read_all(again) == b"".join([*made, large])


@pytest.mark.parametrize("step", [5, 1 << 30])
def test_a_crash_loses_nothing_of_a_log_whose_leader_was_compacted(tmp_path: Path, step: int) -> None:
    path = tmp_path / "t-0"
    log = open_log(path)
    made = []
    for offset in range(0, 60 * step, step):
        made.append(batch(offset, value=b"v" * 60))
        add(log, made[-1], first=offset, last=offset)
    assert len(log.segments) > 4
    again = open_log(path)
    assert (again.recovery.reason, read_all(again)) == ("", b"".join(made))


def test_a_torn_write_that_cannot_be_cut_is_harmless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t-0"
    log = open_log(path, LogConfig())
    made = fill(log, 3)
    real, real_cut = operating_system.pwrite, os.ftruncate
    monkeypatch.setattr(operating_system, "pwrite", FullDisk(30, errno.ENOSPC))
    monkeypatch.setattr(os, "ftruncate", lambda fd, size: (_ for _ in ()).throw(OSError(errno.EIO, "no")))
    with pytest.raises(StorageError, match="the disk is full"):
        add(log, batch(9), first=9, last=9)
    monkeypatch.setattr(operating_system, "pwrite", real)
    monkeypatch.setattr(os, "ftruncate", real_cut)
    assert read_all(log) == b"".join(made)
    assert open_log(path, LogConfig()).recovery.bytes_cut == 30


def test_short_writes_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(tmp_path / "t-0", LogConfig())
    real: Callable[..., int] = operating_system.pwrite
    monkeypatch.setattr(operating_system, "pwrite", lambda fd, data, at: real(fd, bytes(data)[:7], at))
    made = fill(log, 3)
    assert read_all(log) == b"".join(made)


def test_a_file_size_limit_is_a_full_disk(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", LogConfig())
    made = fill(log, 3)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (log.size_bytes + 40, hard))
    try:
        with pytest.raises(StorageError, match="may not grow any further"):
            add(log, batch(9), first=9, last=9)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert last_log_file(tmp_path / "t-0").stat().st_size == log.size_bytes
    assert read_all(log) == b"".join(made)
    made += fill(log, 1)
    assert read_all(log) == b"".join(made)


def test_an_index_that_cannot_be_written_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    log = open_log(tmp_path / "t-0")

    def refuse(*_: object) -> None:
        raise StorageError("cannot write x.index: the disk is full")

    monkeypatch.setattr("penstock.log.segments.index._write", refuse)
    made = fill(log, 20)
    log.close()
    assert "it will be rebuilt" in caplog.text
    monkeypatch.undo()
    log = open_log(tmp_path / "t-0", clean_shutdown=True)
    assert read_all(log, 31) == b"".join(made[10:])


def test_a_new_segment_that_cannot_be_made_refuses_the_append(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(tmp_path / "t-0", LogConfig(segment_bytes=100))
    fill(log, 1)

    def refuse(path: str) -> None:
        raise StorageError(f"cannot create {path}: the disk is full")

    monkeypatch.setattr("penstock.log.segments.segment.create_file", refuse)
    with pytest.raises(StorageError, match="cannot create"):
        fill(log, 1)
    assert log.end_offset == 3
    monkeypatch.undo()
    fill(log, 1)
    assert log.end_offset == 6
    assert len(cut(read_all(log))) == 2


def test_a_failing_device_is_told_when_flushing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(fd: int) -> None:
        raise OSError(errno.EIO, "I/O error")

    log = open_log(tmp_path / "t-0", LogConfig())
    fill(log, 1)
    monkeypatch.setattr(operating_system, "fdatasync", fail)
    with pytest.raises(StorageError, match=r"cannot flush .*\.log: the device reports"):
        log.flush()
    assert log.recovery_point == 0


@pytest.mark.parametrize(
    ("call", "what"), [("listdir", r"read .*t-0"), ("open", r"create .*\.log")], ids=["read", "create"]
)
def test_permissions_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, what: str) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, call, refuse)
    with pytest.raises(StorageError, match=f"cannot {what}: permission denied"):
        open_log(tmp_path / "t-0")


@pytest.mark.parametrize(
    ("number", "words"),
    [(errno.EACCES, "permission denied"), (errno.EMFILE, "ulimit -n"), (errno.EIO, "device")],
)
def test_what_cannot_be_opened_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, words: str
) -> None:
    path = tmp_path / "t-0"
    log = open_log(path)
    fill(log, 20)
    log.close()

    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("penstock.log.directory.files.OpenFile", refuse)
    with pytest.raises(StorageError, match=rf"cannot open .*\.log: .*{words}"):
        open_log(path)


def test_a_directory_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "t-0").write_text("")
    with pytest.raises(StorageError, match="cannot create"):
        open_log(tmp_path / "t-0")


def test_a_segment_too_large_for_its_index(tmp_path: Path) -> None:
    path = tmp_path / "t-0"
    open_log(path).close()
    os.truncate(last_log_file(path), 1 << 31)
    with pytest.raises(StorageError, match="more than a segment can have"):
        open_log(path)


def test_damage_found_by_a_reader_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "t-0"
    log = open_log(path, LogConfig(segment_bytes=500))
    fill(log, 10)
    log.close()
    first = path / names(path, ".log")[0]
    data = bytearray(first.read_bytes())
    data[16] = 9
    first.write_bytes(data)
    for name in names(path, "index"):
        (path / name).unlink()
    log = open_log(path, LogConfig(segment_bytes=500), clean_shutdown=True)
    with pytest.raises(StorageError, match=r"0\.log is damaged: no batch at position 0"):
        log.read(1, 1)
