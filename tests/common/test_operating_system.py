"""Tests of the replacements for system calls that some operating systems lack."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from pathlib import Path

import pytest

from penstock.common import operating_system


def test_reads_and_writes_at_positions(tmp_path: Path) -> None:
    fd = os.open(tmp_path / "data", os.O_RDWR | os.O_CREAT)
    try:
        assert operating_system._write_at(fd, memoryview(b"0123456789"), 0) == os.pwrite(fd, b"0123456789", 0)
        assert operating_system._write_at(fd, b"ab", 4) == 2
        for size, position in ((3, 0), (4, 3), (100, 8), (5, 10), (5, 50)):
            assert operating_system._read_at(fd, size, position) == os.pread(fd, size, position)
    finally:
        os.close(fd)


@pytest.mark.parametrize("loops_take_signals", [True, False])
def test_a_signal_reaches_the_loop(monkeypatch: pytest.MonkeyPatch, loops_take_signals: bool) -> None:
    monkeypatch.setattr(operating_system, "LOOPS_TAKE_SIGNALS", loops_take_signals)
    before = signal.getsignal(signal.SIGTERM)

    async def wait() -> None:
        come = asyncio.Event()
        operating_system.on_signal(asyncio.get_running_loop(), signal.SIGTERM, come.set)
        signal.raise_signal(signal.SIGTERM)
        await asyncio.wait_for(come.wait(), 10)

    try:
        asyncio.run(wait())
    finally:
        signal.signal(signal.SIGTERM, before)


def test_unread_bytes_of_a_socket() -> None:
    near, far = socket.socketpair()
    with near, far:
        assert not operating_system.has_unread(near.fileno())
        far.sendall(b"x")
        assert operating_system.has_unread(near.fileno())
        descriptor = near.fileno()
    assert not operating_system.has_unread(-1)
    assert descriptor >= 0


def test_a_lock_is_taken_once(tmp_path: Path) -> None:
    """A second process tries to take the lock, because a process may take its own `fcntl` lock again."""
    path = tmp_path / "lock"
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    assert operating_system.try_lock(fd)
    child = os.fork()
    if not child:
        os._exit(int(operating_system.try_lock(os.open(path, os.O_RDWR))))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    os.close(fd)


def test_a_lock_of_a_descriptor_is_taken_once_in_a_process(tmp_path: Path) -> None:
    first, second = (os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT) for _ in range(2))
    assert operating_system.try_lock(first, for_process=False)
    assert not operating_system.try_lock(second, for_process=False)
    os.close(first)
    assert operating_system.try_lock(second, for_process=False)
    os.close(second)
