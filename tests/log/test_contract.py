"""Tests that run the same checks on the log in memory and on the log on disk.

Both are also compared with a very simple model.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from log.log_laws import LAWS, SMALL, T0, MakeLog, add, batch, message
from penstock.log import DiskLog, LogConfig, MemoryLog


def memory(_: Path) -> MakeLog:
    return MemoryLog


def disk(path: Path) -> MakeLog:
    numbers = itertools.count()
    return lambda config, now_ms: DiskLog(str(path / f"t-{next(numbers)}"), config, now_ms=now_ms)


def disk_reopened(path: Path) -> MakeLog:
    """Return a factory of logs on disk that are closed and opened again before every read."""
    numbers = itertools.count()
    return lambda config, now_ms: Reopened(str(path / f"t-{next(numbers)}"), config, now_ms)


class Reopened:
    """A log on disk that is closed and opened again before a read; other calls are passed on."""

    def __init__(self, directory: str, config: LogConfig, now_ms: int) -> None:
        self._log = DiskLog(directory, config, now_ms=now_ms)
        self._now_ms = now_ms

    def __getattr__(self, name: str) -> Any:
        if name in ("read", "offset_for_timestamp", "offset_of_max_timestamp", "entries", "truncate_to"):
            old = self._log
            old.close()
            self._log = DiskLog(
                old.directory,
                old.config,
                now_ms=self._now_ms,
                clean_shutdown=True,
                start_offset=old.start_offset,
            )
            assert self._log.recovery.bytes_cut == 0
            assert self._log.end_offset == old.end_offset
            assert self._log.start_offset == old.start_offset
        return getattr(self._log, name)


OF_ONE_RUN = {"rolls_by_time", "answers_old_offset_requests", "flushes_when_told"}
"""Checks that do not hold after a restart: they depend on unflushed data or on the time of an append.

After a restart, the file's modification time replaces the time of the last append.
"""

CASES = [
    pytest.param(kind, law, id=f"{kind.__name__}-{law.__name__}")
    for kind in (memory, disk, disk_reopened)
    for law in LAWS
    if kind is not disk_reopened or law.__name__ not in OF_ONE_RUN
]


@pytest.mark.parametrize(("kind", "law"), CASES)
def test_log_obeys(kind: Callable[[Path], MakeLog], law: Callable[[MakeLog], None], tmp_path: Path) -> None:
    law(kind(tmp_path))


class Model:
    """A simple log: a list of batches with their first and last offset, timestamps and bytes."""

    def __init__(self) -> None:
        self.batches: list[tuple[int, int, list[int], bytes]] = []
        self.start = self.end = 0

    def read(self, offset: int, max_bytes: int, up_to: int, at_least_one: bool) -> bytes:
        out = b""
        if offset >= min(up_to, self.end):
            return out
        for _, last, _, data in self.batches:
            if last < offset:
                continue
            if last >= up_to or (len(out) + len(data) > max_bytes and not (at_least_one and not out)):
                break
            out += data
        return out

    def records(self) -> list[tuple[int, int]]:
        return [
            (first + n, time)
            for first, _, times, _ in self.batches
            for n, time in enumerate(times)
            if first + n >= self.start
        ]


@pytest.mark.parametrize("seed", range(12))
def test_random_operations_get_the_same_answers_from_all(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    config = rng.choice(
        [SMALL, LogConfig(), LogConfig(segment_bytes=700, index_interval_bytes=1), LogConfig(segment_ms=5000)]
    )._replace(compacted=True)  # there will be gaps
    on_disk = DiskLog(str(tmp_path / "t-0"), config, now_ms=T0)
    logs: list[Any] = [MemoryLog(config, now_ms=T0), on_disk]
    model = Model()
    now = T0
    for _ in range(400):
        now += rng.randrange(200)
        step = rng.random()
        if step < 0.55:
            first = model.end + (rng.randrange(1, 50) if rng.random() < 0.05 else 0)
            pieces, last = b"", first - 1
            for _ in range(rng.choice((1, 1, 1, 4))):
                times = [now - rng.randrange(3000) for _ in range(rng.choice((1, 1, 5)))]
                begin, last = last + 1, last + len(times)
                data = (
                    message(begin, rng.randbytes(rng.randrange(30)), timestamp=times[0])
                    if len(times) == 1 and rng.random() < 0.1
                    else batch(begin, times, value=rng.randbytes(rng.randrange(12)))
                )
                model.batches.append((begin, last, times, data))
                pieces += data
                model.end = last + 1
            top = max(time for b in model.batches if b[0] >= first for time in b[2])
            for log in logs:
                add(log, pieces, first=first, last=last, timestamp=top, now_ms=now)
        elif step < 0.58 and model.end > model.start:
            model.start = rng.randrange(model.start, model.end + 1)
            for log in logs:
                log.delete_before(model.start)
        elif step < 0.61 and model.batches:
            offset = rng.randrange(model.start, model.end + 1)
            if offset < model.end:
                model.batches = [b for b in model.batches if b[1] < offset]
                for log in logs:
                    log.truncate_to(offset)
                # Where a gap or a segment began, the log may end later than its last batch.
                model.end = logs[0].end_offset
                assert max([b[1] + 1 for b in model.batches] or [0]) <= model.end <= offset
                model.start = min(model.start, model.end)
        elif step < 0.62:
            model.start = model.end = model.end + rng.randrange(100)
            model.batches = []
            for log in logs:
                log.begin_at(model.end)
        elif step < 0.65:
            clean = rng.random() < 0.5
            logs[1].close()
            logs[1] = DiskLog(
                str(tmp_path / "t-0"), config, now_ms=now, clean_shutdown=clean, start_offset=model.start
            )
            assert logs[1].recovery.bytes_cut == 0
        offset = rng.randrange(model.start, model.end + 1)
        size, up_to, one = rng.randrange(2000), rng.randrange(model.start, model.end + 2), rng.random() < 0.7
        wanted = now - rng.randrange(20_000)
        found = next((pair for pair in model.records() if pair[1] >= wanted), None)
        latest = max(model.records(), key=lambda pair: (pair[1], -pair[0]), default=None)
        for log in logs:
            assert (log.start_offset, log.end_offset) == (model.start, model.end)
            got = log.read(offset, size, up_to_offset=up_to, at_least_one=one).to_bytes()
            assert got == model.read(offset, size, up_to, one)
            assert log.offset_for_timestamp(wanted) == found
            assert log.offset_of_max_timestamp() == latest
        if any(last >= model.start and data[16] == 2 for _, last, _, data in model.batches):
            assert [log.leader_epochs.latest for log in logs] == [0, 0]
