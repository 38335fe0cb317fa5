"""Tests of commands in a pseudo terminal: their output, and how keys such as Ctrl-C end them."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from penstock import Admin, Broker

LONG_S = 60.0
CTRL_C, CTRL_D = b"\x03", b"\x04"


class Terminal:
    """A command whose stdin, stdout and stderr are one pseudo terminal, its controlling terminal."""

    def __init__(self, *words: str) -> None:
        self._mine, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", RUN, *words],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            env=os.environ | {"TERM": "xterm", "COLUMNS": "", "LINES": ""},
        )
        os.close(theirs)
        self.seen = ""

    def type(self, keys: bytes) -> None:
        os.write(self._mine, keys)

    def until(self, pattern: str) -> str:
        """Read the command's output until it matches `pattern`; return all output so far."""
        deadline = time.monotonic() + LONG_S
        while not re.search(pattern, self.seen):
            assert time.monotonic() < deadline, self.seen
            assert self._read() or self.process.poll() is None, self.seen
        return self.seen

    def ended(self) -> int:
        """Wait until the command has ended, read the rest of its output, and return its exit code."""
        deadline = time.monotonic() + LONG_S
        while self.process.poll() is None:
            assert time.monotonic() < deadline, self.seen
            self._read()
        while self._read():
            continue
        return self.process.returncode

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._mine)

    def _read(self) -> bool:
        if not select.select([self._mine], [], [], 0.1)[0]:
            return False
        with contextlib.suppress(OSError):  # the other end was closed
            data = os.read(self._mine, 65_536)
            self.seen += data.decode()
            return bool(data)
        return False


RUN = """
import fcntl, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # so that Ctrl-C is a signal to this process
from penstock.cli import main
sys.exit(main())
"""


@contextlib.contextmanager
def running(*words: str) -> Iterator[Terminal]:
    terminal = Terminal(*words)
    try:
        yield terminal
    finally:
        terminal.close()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with Broker() as broker:
        with Admin(broker.bootstrap_servers) as admin:
            admin.create_topic("t", partitions=2)
            admin.create_topic("penstock-perf")
        yield broker.bootstrap_servers


def test_top_is_a_picture_that_leaves_the_screen_as_it_was(address: str) -> None:
    with running("top", "-d", "200ms", "-b", address) as terminal:
        seen = terminal.until(r"\d topics?, 0 groups, 0 records/s(.|\n)*records/s(.|\n)*\bt\b")
        assert seen.startswith("\x1b[?1049h\x1b[?25l\x1b[H")
        terminal.type(CTRL_C)
        assert terminal.ended() == 130
    assert terminal.seen.count("\x1b[?25h\x1b[?1049l") >= 1
    assert "Traceback" not in terminal.seen


def test_messages_are_typed_until_ctrl_d(address: str) -> None:
    with running("produce", "-t", "t", "-b", address) as terminal:
        terminal.until("reading messages from the terminal, one a line; Ctrl-D ends")
        terminal.type(b"hello\n" + CTRL_D)
        assert terminal.ended() == 0
    with running("consume", "-t", "t", "-e", "-q", "-b", address) as terminal:
        assert terminal.ended() == 0
    assert "hello" in terminal.seen


@pytest.mark.parametrize(
    ("words", "pattern"),
    [
        ("perf produce --rate 10 --for 10m --keep", r"records/s"),
        ("perf consume --new --for 10m", r"0 records/s"),
        ("consume -t t", r"waiting for messages of t; Ctrl-C ends \(\d s\)"),
    ],
    ids=["perf produce", "perf consume", "consume"],
)
def test_ctrl_c_ends_at_once(words: str, pattern: str, address: str) -> None:
    with running(*words.split(), "-b", address) as terminal:
        terminal.until(pattern)
        terminal.type(CTRL_C)
        assert terminal.ended() == 130
    assert "Traceback" not in terminal.seen


def test_parquet_is_not_for_terminals(address: str) -> None:
    with running("consume", "-t", "t", "-e", "-f", "parquet", "-b", address) as terminal:
        assert terminal.ended() == 2
    assert "Parquet is not for terminals: give --output FILE, or a pipe" in terminal.seen
