"""Tests that simulate a power cut after every file system call: the log opens without the unflushed data.

The tests patch the calls that change files. A `Disk` records the flushed contents of every file and the
flushed names of the directory. After each call it computes what could be left after a power cut: in the worst
case only what was flushed, in others names without contents, or zeros instead of data.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from log.log_laws import T0, fill
from penstock.log import DataDirectory
from penstock.log.compaction.compactor import CompactionPolicy, compact
from penstock.log.contract import LogConfig
from penstock.log.disk.disk_log import DiskLog
from penstock.model import TopicPartition
from penstock.records.batch import decode_batch, encode_batch
from penstock.records.format.batch_header import read_header, split_batches, verify_crc
from system_calls import owner_of

TOPIC_ID = bytes(range(16))
CONFIG = LogConfig(segment_bytes=900, index_interval_bytes=200)


Survivors = dict[str, bytes | None]
"""A dict from each path in a directory to its contents, or to None for a directory."""


class Disk:
    """A record of what a directory would contain after a power cut.

    `on_change` is called after every call that changes the directory.
    """

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.directory = directory
        self.on_change: Callable[[], None] = lambda: None
        self._contents: dict[int, bytes] = {}
        self._names: dict[int, dict[str, int]] = {}
        self._is_busy = False
        for name in ("pwrite", "ftruncate", "unlink", "replace", "close"):
            owner = owner_of(name)
            monkeypatch.setattr(owner, name, self._watched(getattr(owner, name)))
        for name in ("fsync", "fdatasync"):
            monkeypatch.setattr(owner_of(name), name, self._forced)

    def _watched(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*args: Any, **kwargs: Any) -> Any:
            result = call(*args, **kwargs)
            self._changed()
            return result

        return watched

    def _forced(self, fd: int) -> None:
        status = os.fstat(fd)
        if os.path.isdir(f"/proc/self/fd/{fd}"):
            self._names[status.st_ino] = self._live(f"/proc/self/fd/{fd}")
        else:
            self._contents[status.st_ino] = Path(f"/proc/self/fd/{fd}").read_bytes()
        self._changed()

    def _changed(self) -> None:
        if not self._is_busy:
            self._is_busy = True
            try:
                self.on_change()
            finally:
                self._is_busy = False

    def _live(self, directory: str | Path) -> dict[str, int]:
        return {entry.name: entry.inode() for entry in os.scandir(directory)}

    def survivors(self) -> Iterator[Survivors]:
        """Yield several possible contents of the directory after a power cut."""
        yield self._found(lambda known, _: known, listed=True)
        yield self._found(lambda known, _: known)
        yield self._found(lambda known, now: known + bytes(max(0, len(now) - len(known))))
        yield self._found(lambda known, now: now[: max(len(known), len(now) // 2)])

    def _found(self, content: Callable[[bytes, bytes], bytes], *, listed: bool = False) -> Survivors:
        """Return one possible state after a power cut.

        `content` returns what is left of a file, given its flushed and its written contents. With `listed`,
        only flushed names are left.
        """
        found: Survivors = {}

        def look(directory: Path, within: str) -> None:
            live = self._live(directory)
            names = self._names.get(directory.stat().st_ino, {}) if listed else live
            for name, inode in names.items():
                path = directory / name
                if path.is_dir():
                    found[within + name] = None
                    look(path, f"{within}{name}/")
                else:
                    now = path.read_bytes() if name in live else b""
                    found[within + name] = content(self._contents.get(inode, b""), now)

        look(self.directory, "")
        return found


def lay_out(files: Survivors, directory: Path) -> Path:
    """Create a directory with the files that survived; return its path."""
    directory.mkdir()
    for name, content in files.items():
        if content is None:
            (directory / name).mkdir()
        else:
            (directory / name).write_bytes(content)
    return directory


def open_after(files: Survivors, directory: Path) -> DiskLog:
    """Create a directory with the files that survived, and open the log in it."""
    return DiskLog(str(lay_out(files, directory)), CONFIG, now_ms=T0)


def check_well_formed(log: DiskLog) -> bytes:
    """Check that a log's offsets ascend, CRCs match and every offset can be read; return all batches."""
    data = log.read(log.start_offset, 1 << 30).to_bytes()
    last = log.start_offset - 1
    for start, end, _ in split_batches(data):
        header = read_header(data, start)
        verify_crc(data, start, end)
        assert header.base_offset > last
        last = header.last_offset
    assert last == log.end_offset - 1
    for offset in range(log.start_offset, log.end_offset, 5):
        assert read_header(log.read(offset, 1).to_bytes()).last_offset >= offset
    return data


@pytest.fixture
def make_crashes(tmp_path: Path) -> Iterator[Callable[[Disk, Callable[[DiskLog], None]], None]]:
    count = 0

    def crash(disk: Disk, check: Callable[[DiskLog], None]) -> None:
        nonlocal count
        for files in disk.survivors():
            count += 1
            log = open_after(files, tmp_path / f"crash{count}")
            check(log)
            log.close()

    yield crash
    assert count > 100, "there have been many moments"


def test_appending(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_crashes: Any) -> None:
    directory = tmp_path / "t-0"
    directory.mkdir()
    disk = Disk(directory, monkeypatch)
    log = DiskLog(str(directory), CONFIG, now_ms=T0)
    log.flush()
    made: list[bytes] = []
    safe = 0

    def check(crashed: DiskLog) -> None:
        data = check_well_formed(crashed)
        assert b"".join(made).startswith(data)
        assert crashed.end_offset >= safe, "what was flushed is there"

    disk.on_change = lambda: make_crashes(disk, check)
    for number in range(14):
        # What is being written may be there already when the power fails.
        first = log.end_offset
        rows = [(b"k", b"v" * 40, (), T0)] * 3
        made.append(encode_batch(rows, base_offset=first, partition_leader_epoch=0))
        log.append(made[-1], first_offset=first, last_offset=first + 2, max_timestamp=T0, now_ms=T0)
        if number % 3 == 2:
            log.flush()
            safe = log.recovery_point
            assert safe == log.end_offset
    log.close()


def test_compacting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_crashes: Any) -> None:
    directory = tmp_path / "t-0"
    directory.mkdir()
    disk = Disk(directory, monkeypatch)
    log = DiskLog(str(directory), CONFIG, now_ms=T0)
    for turn in range(3):
        for n in range(6):
            first = log.end_offset
            rows = [(b"k%d" % n, b"%d" % turn, (), T0), (b"only%d%d" % (turn, n), b"v" * 30, (), T0)]
            batch = encode_batch(rows, base_offset=first, partition_leader_epoch=0)
            log.append(batch, first_offset=first, last_offset=first + 1, max_timestamp=T0, now_ms=T0)
    log.flush()
    wanted, end = table_of(log), log.end_offset

    def check(crashed: DiskLog) -> None:
        check_well_formed(crashed)
        assert (table_of(crashed), crashed.end_offset) == (wanted, end)

    disk.on_change = lambda: make_crashes(disk, check)
    assert compact(log, CompactionPolicy(min_dirty_ratio=0), now_ms=T0)
    log.close()


def table_of(log: DiskLog) -> dict[bytes | None, bytes | None]:
    data = log.read(log.start_offset, 1 << 30).to_bytes()
    batches = list(split_batches(data))
    return {row.key: row.value for start, end, _ in batches for row in decode_batch(data, start, end, "", 0)}


def test_truncating_and_deleting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_crashes: Any) -> None:
    directory = tmp_path / "t-0"
    directory.mkdir()
    disk = Disk(directory, monkeypatch)
    log = DiskLog(str(directory), CONFIG, now_ms=T0)
    fill(log, 24, value=b"v" * 40)
    log.flush()

    def check(crashed: DiskLog) -> None:
        check_well_formed(crashed)

    disk.on_change = lambda: make_crashes(disk, check)
    for offset in (9, 20, 31):
        log.delete_before(offset)
        fill(log, 1, value=b"v" * 40)
        log.flush()
    for offset in (60, 48):
        log.truncate_to(offset)
        fill(log, 2, value=b"w" * 40)
        log.flush()
    log.close()


def test_a_whole_data_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The directory has two partitions and other files.

    After any power cut it can be opened, and flushed records are found.
    """
    data = tmp_path / "data"
    data.mkdir()
    disk = Disk(data, monkeypatch)
    safe: dict[TopicPartition, int] = {}
    crashes = 0

    def crash() -> None:
        nonlocal crashes
        for files in disk.survivors():
            crashes += 1
            found = DataDirectory(str(lay_out(files, tmp_path / f"crash{crashes}")))
            assert safe.keys() <= set(found.partitions)
            for place in found.partitions:
                assert found.topic_id(place) in (TOPIC_ID, None)
                log = found.open_log(place, CONFIG, now_ms=T0)
                check_well_formed(log)
                assert log.end_offset >= safe.get(place, 0)
            found.close()

    disk.on_change = crash
    directory = DataDirectory(str(data))
    for index in range(2):
        place = TopicPartition("t", index)
        log = directory.create_log(place, TOPIC_ID, CONFIG, now_ms=T0)
        fill(log, 4, value=b"v" * 40)
        log.flush()
        safe[place] = log.end_offset
    directory.write_checkpoints()
    directory.close()
    assert crashes > 100
