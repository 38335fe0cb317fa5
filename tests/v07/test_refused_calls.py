"""Tests of a 0.7 log when any system call fails: a retry succeeds, and a restart finds the log complete."""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from penstock.errors import StorageError
from penstock.v07.byte_log import ByteLog, ByteLogConfig
from system_calls import Refusals

MESSAGES = memoryview(b"\0\0\0\x0a" + b"\0" * 10)
NOW_MS = 1_700_000_000_000


def opened(directory: Path) -> ByteLog:
    config = ByteLogConfig(segment_bytes=20, retention_ms=1000)
    return ByteLog(str(directory), config, now_ms=NOW_MS, is_clean=True)


def live(directory: Path, refusals: Refusals) -> int:
    """Append, roll and remove segments, each once more after an error; return the number of errors."""
    failures = 0

    def do(what: Callable[[], object]) -> None:
        nonlocal failures
        try:
            what()
        except StorageError:
            failures += 1
            refusals.disarm()
            what()

    logs: list[ByteLog] = []
    do(lambda: logs.append(opened(directory)))
    log = logs[-1]
    for _ in range(9):
        end = log.end
        do(lambda: log.append(MESSAGES, 1, now_ms=NOW_MS))
        assert log.end == end + len(MESSAGES)
    do(lambda: log.maintain(now_ms=NOW_MS + 100_000))
    assert (log.start, log.end) == (9 * len(MESSAGES), 9 * len(MESSAGES))
    do(lambda: log.append(MESSAGES, 1, now_ms=NOW_MS))
    refusals.disarm()
    again = opened(directory)
    assert (again.start, again.end) == (9 * len(MESSAGES), 10 * len(MESSAGES))
    return failures


@pytest.mark.parametrize(("at_once", "number"), [(1, errno.EIO), (1 << 30, errno.ENOSPC)])
def test_what_was_refused_is_done_later(
    at_once: int, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusals = Refusals(monkeypatch)
    failures, first, count = 0, 0, 1
    while first < count:
        first += 1
        refusals.arm(first, first + at_once - 1, number)
        failures += live(tmp_path / f"{first}", refusals)
        count = max(count, refusals.count) if first == 1 else count
        refusals.disarm()
    assert failures > 10


def test_a_log_grows_on_where_a_roll_was_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The segment size limit then changes.

    A restart still finds segments that follow each other without gaps.
    """
    log = opened(tmp_path)
    log.append(MESSAGES, 1, now_ms=NOW_MS)
    log.append(MESSAGES, 1, now_ms=NOW_MS)
    for refused in range(1, 12):
        refusals = Refusals(monkeypatch)
        refusals.arm(refused, refused, errno.EMFILE)
        with suppress(StorageError):
            log.append(MESSAGES, 1, now_ms=NOW_MS)
        refusals.disarm()
        monkeypatch.undo()
        log._config = log._config._replace(segment_bytes=1 << 20)
        log.append(MESSAGES, 1, now_ms=NOW_MS)
        log._config = log._config._replace(segment_bytes=20)
        assert opened(tmp_path).end == log.end
