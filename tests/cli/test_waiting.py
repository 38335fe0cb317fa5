"""Tests of the messages of waiting commands and of the time they take to end.

They use real processes, a real terminal and a broker that is killed. The time limits only end a test that
fails.
"""

from __future__ import annotations

import contextlib
import os
import pty
import re
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from penstock import Admin, Broker, Producer
from penstock.broker.lever_socket import directory, socket_path
from penstock.cli.waiting import Waiting
from penstock.client.cluster.retry import Obstacle
from penstock.v07.driver import Driver07
from penstock.v07.server import Broker07

LONG_S = 60.0
ENDED_S = 10.0
"""The limit for the end of a command, in seconds.

A command takes about 1 s now; with an old defect it took 40 s.
"""


class BrokerProcess:
    """A broker process that a test can kill, stop and start again on the same port."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.port = 0
        self.start()

    def start(self) -> None:
        words = ["-m", "penstock", "broker", "--port", str(self.port), "--data-dir", str(self._directory)]
        # In a session of its own: the system wakes what stands still when the shell of these tests ends.
        self._process = subprocess.Popen(
            [sys.executable, *words], stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        found = re.search(r":(\d+)", line)
        assert found, line
        self.port = int(found[1])

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def freeze(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    process = BrokerProcess(tmp_path / "log")
    with Admin(process.address) as admin:
        admin.create_topic("t")
    yield process
    process.kill()


class Command:
    """A command whose stderr is a terminal or a pipe; the test reads it while the command runs."""

    def __init__(self, *words: str, is_terminal: bool, start: Sequence[str] = ("-m", "penstock")) -> None:
        self._mine, theirs = pty.openpty() if is_terminal else os.pipe()
        self.process = subprocess.Popen(
            [sys.executable, *start, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        self.said = ""

    def until(self, pattern: str) -> str:
        """Read the command's stderr until it matches `pattern`; return everything read so far."""
        deadline = time.monotonic() + LONG_S
        while not re.search(pattern, self.said):
            assert time.monotonic() < deadline, self.said
            self._read()
        return self.said

    def send(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def interrupted(self) -> tuple[int, float]:
        """Press Ctrl-C; return the exit code, and how many seconds the command took to end."""
        begin = time.monotonic()
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(LONG_S), time.monotonic() - begin

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._mine)
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):
                pipe.close()

    def _read(self) -> None:
        if select.select([self._mine], [], [], 0.2)[0]:
            with contextlib.suppress(OSError):  # how a terminal says that the other end was closed
                self.said += os.read(self._mine, 65_536).decode()


@contextlib.contextmanager
def running(*words: str, is_terminal: bool = False) -> Iterator[Command]:
    command = Command(*words, is_terminal=is_terminal)
    try:
        yield command
    finally:
        command.close()


QUICK = (
    "import sys\n"
    "from penstock.cli import main, waiting\n"
    "waiting.SILENCE_S, waiting.LOOK_EVERY_S = 0.7, 0.05\n"
    "sys.exit(main())\n"
)
"""A program that runs a command whose waiting message appears after 0.7 s, and that checks every 0.05 s."""


@contextlib.contextmanager
def running_quickly(*words: str) -> Iterator[Command]:
    command = Command(*words, is_terminal=False, start=("-c", QUICK))
    try:
        yield command
    finally:
        command.close()


def is_told_that_it_is_away_and_back(command: Command, broker: Broker) -> None:
    broker.stop()
    command.until(rf"waiting for \d s: .*{broker.port}: connection refused")
    broker.start()
    command.until("going on after")


@pytest.mark.parametrize("which", ["source", "target"])
def test_a_mirror_with_nothing_to_copy_says_that_a_kafka_is_gone_and_back(which: str) -> None:
    with Broker() as old, Broker() as new, Admin(old.bootstrap_servers) as admin:
        admin.create_topic("t")
        words = ("mirror", "-f", "-t", "t", "--from", old.bootstrap_servers, "-b", new.bootstrap_servers)
        with running_quickly(*words) as command:
            command.until("copying t: 0 messages")
            is_told_that_it_is_away_and_back(command, old if which == "source" else new)
            assert command.interrupted()[0] == 130


def test_a_mirror_that_goes_on_moves_groups_on_and_on() -> None:
    def moved() -> int:
        return next((at.offset for at in admin.list_group_offsets("g").values()), -1)

    with (
        Broker() as old,
        Broker() as new,
        Admin(old.bootstrap_servers) as source,
        Admin(new.bootstrap_servers) as admin,
    ):
        source.create_topic("t")
        words = ("mirror", "-f", "-t", "t", "--from", old.bootstrap_servers, "-b", new.bootstrap_servers)
        with (
            running_quickly(*words, "--groups", "g*") as command,
            Producer(old.bootstrap_servers) as producer,
        ):
            for count in range(1, 4):
                producer.send("t", b"v", partition=0).result()
                source.alter_group_offsets("g", {("t", 0): count})
                deadline = time.monotonic() + LONG_S
                while moved() != 2 * count:  # the end, behind a marker for each record
                    assert time.monotonic() < deadline, command.said
                    time.sleep(0.02)
            assert command.interrupted()[0] == 130


def test_a_mirror_from_kafka_0_7_says_that_a_kafka_is_gone_and_back(tmp_path: Path) -> None:
    with Broker() as new, contextlib.ExitStack() as stack:
        old = stack.enter_context(Broker07(tmp_path))
        driver = stack.enter_context(Driver07(old.host, old.port))
        driver.send("t", [b"one"], partition=0)
        assert driver.latest("t", 0)
        words = ("mirror", "-f", "-t", "t", "-b", new.bootstrap_servers, "--from-0.7")
        with running_quickly(*words, f"{old.host}:{old.port}") as command:
            command.until("partition 0: 1 messages")
            is_told_that_it_is_away_and_back(command, new)
            command.said = ""
            stack.close()
            command.until(rf"waiting for \d s: .*{old.port}: connection refused")
            with Broker07(tmp_path, port=old.port), Driver07(old.host, old.port) as driver:
                command.until("going on after")
                driver.send("t", [b"two"], partition=0)
                command.until("partition 0: 2 messages")
                assert command.interrupted()[0] == 130


def test_top_says_that_its_broker_is_gone_before_the_next_look() -> None:
    with Broker() as broker, running_quickly("top", "-d", "1h", "-b", broker.bootstrap_servers) as command:
        assert command.process.stdout is not None
        assert b"0 topics" in command.process.stdout.readline()
        is_told_that_it_is_away_and_back(command, broker)
        assert command.interrupted()[0] == 130


def test_a_lever_that_takes_long_says_what_it_waits_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    os.mkdir(directory(), mode=0o700)
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(socket_path(4))
        silent.listen()
        with running_quickly("cluster", "stop", "2", "-b", "127.0.0.1:4") as command:
            command.until("the cluster at 127.0.0.1:4 has not answered stop; for 60 s at most")
            assert command.interrupted()[0] == 130


@pytest.mark.parametrize("is_terminal", [True, False], ids=["terminal", "pipe"])
@pytest.mark.parametrize("group", [(), ("-G", "g")], ids=["alone", "in a group"])
def test_a_reader_says_that_its_broker_is_gone_and_ends_at_once(
    broker: BrokerProcess, group: tuple[str, ...], is_terminal: bool
) -> None:
    with running("consume", "-t", "t", "-b", broker.address, *group, is_terminal=is_terminal) as command:
        command.until("waiting for messages of t")
        broker.kill()
        said = command.until(rf"waiting.*{broker.address}: connection refused")
        assert ("\x1b[K" in said) == is_terminal
        code, seconds = command.interrupted()
        assert code == 130
        assert seconds < ENDED_S
        broker.start()


def test_a_reader_goes_on_when_its_broker_is_back_and_says_so(broker: BrokerProcess) -> None:
    with running("consume", "-t", "t", "-b", broker.address) as command:
        command.until("waiting for messages of t")
        broker.kill()
        command.until("connection refused")
        broker.start()
        assert command.until("going on after").count("connection refused") == 1


def test_a_writer_says_that_its_broker_is_gone_and_ends_at_once(broker: BrokerProcess) -> None:
    with running("produce", "-t", "t", "-b", broker.address) as command:
        command.send(b"one\n")
        with running("consume", "-t", "t", "-b", broker.address, "-c", "1", "-q") as reader:
            assert reader.process.wait(LONG_S) == 0
        broker.kill()
        command.send(b"two\n")
        command.until(rf"waiting.*{broker.address}: connection refused")
        code, seconds = command.interrupted()
        assert code == 130
        assert seconds < ENDED_S
        broker.start()


@pytest.mark.parametrize(
    "words",
    [
        ("consume", "-t", "t"),
        ("produce", "-t", "t", os.fspath(Path(__file__))),
        ("topic", "list"),
        ("group", "list"),
        ("config", "describe", "t"),
        ("top",),
        ("mirror", "--from-0.7", "{address}", "-t", "t"),
    ],
    ids=lambda words: words[0],
)
def test_every_command_says_that_a_broker_does_not_answer_and_ends_at_once(
    broker: BrokerProcess, words: tuple[str, ...]
) -> None:
    broker.freeze()
    words = tuple(word.format(address=broker.address) for word in words)
    with running(*words, "-b", broker.address) as command:
        command.until(rf"waiting for \d s: .*{broker.address}")
        code, seconds = command.interrupted()
    assert code == 130
    assert seconds < ENDED_S


def test_quiet_is_quiet(broker: BrokerProcess) -> None:
    with running("consume", "-t", "t", "-b", broker.address, "-q", "-u") as command:
        with running("produce", "-t", "t", "-b", broker.address) as writer:
            writer.send(b"one\n")
            assert writer.process.stdin is not None
            writer.process.stdin.close()
            assert writer.process.wait(LONG_S) == 0
        assert command.process.stdout is not None
        assert command.process.stdout.readline() == b"one\n"
        assert command.interrupted()[0] == 130
        command._read()
        assert command.said == ""


class Script:
    """A stand-in for a client that reports, at each call, the next reason from a list why it must wait."""

    def __init__(self, *obstacles: Obstacle | None) -> None:
        self._obstacles = iter(obstacles)

    def look(self, now: float) -> Obstacle | None:
        return next(self._obstacles)


def test_lines_that_stay_are_written_once_for_each_reason(capsys: pytest.CaptureFixture[str]) -> None:
    waiting = Waiting(is_terminal=False)
    one, two = Obstacle("a:1 is away", 100.0), Obstacle("b:2\n\x1b[31mis away", 100.0)
    waiting._observer = Script(None, one, one, one, two, two, None, None)  # type: ignore[assignment]
    for now in (100.0, 101.0, 102.0, 110.0, 111.0, 112.0, 113.0, 114.0):
        waiting.look(now)
    assert capsys.readouterr().err.splitlines() == [
        "penstock: waiting for 2 s: a:1 is away",
        "penstock: waiting for 11 s: b:2 \\x1b[31mis away",
        "penstock: going on after 13 s",
    ]


def test_the_line_on_a_terminal_is_wiped_away(capsys: pytest.CaptureFixture[str]) -> None:
    waiting = Waiting(is_terminal=True)
    waiting._observer = Script(*[Obstacle("a:1 " + "x" * 200, 0.0)] * 2, None)  # type: ignore[assignment]
    waiting.look(5.0)
    waiting.look(6.0)
    shown = capsys.readouterr().err
    assert re.fullmatch(
        r"\r\x1b\[Kpenstock: waiting: a:1 x+\.\.\. \(5 s\)\r\x1b\[Kpenstock: waiting: a:1 x+\.\.\. \(6 s\)",
        shown,
    )
    assert all(len(line) <= 84 for line in shown.split("\r"))
    waiting.look(7.0)
    assert capsys.readouterr().err == "\r\x1b[K"
    waiting.step_aside()
    assert capsys.readouterr().err == ""


def test_what_a_command_does_is_told_again_where_it_does_something_else(
    capsys: pytest.CaptureFixture[str],
) -> None:
    waiting = Waiting(is_terminal=False)
    waiting._observer = Script(*[None] * 4)  # type: ignore[assignment]
    for text in ("looking at t", lambda: "copying t"):
        waiting.begin_idle(text)
        for _ in range(2):
            waiting.look(time.monotonic() + 10)
    assert capsys.readouterr().err == "penstock: looking at t\npenstock: copying t\n"
