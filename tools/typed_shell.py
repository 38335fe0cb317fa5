"""A shell in a pseudo-terminal, to which a program types commands line by line."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

READY_OR_MORE = re.compile(rb"<ready (\d+)> |<more> ")
PYTHON = re.compile(rb">>> ")
ROWS, COLUMNS = 40, 100


class TypedShell:
    """An interactive bash on a pseudo-terminal, with job control, as in a terminal window.

    >>> with TypedShell(folder, environment) as shell:
    ...     shell.type("penstock topic list\\n", timeout_s=60)
    """

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.output = b""
        """All bytes that the terminal has shown."""
        self._is_in_python = False
        self._folder = folder
        self._environment = {
            **environment,
            "PS1": "<ready $?> ",
            "PS2": "<more> ",
            "TERM": "xterm-256color",
            "HISTFILE": "",
            "PYTHON_BASIC_REPL": "1",
        }

    def __enter__(self) -> TypedShell:
        self._pid, self._terminal = pty.fork()
        if self._pid == 0:
            os.chdir(self._folder)
            os.execvpe("bash", ["bash", "--noprofile", "--norc", "--noediting", "-i"], self._environment)
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self._wait(0, 30)
        self.type("set -o pipefail\n", timeout_s=30)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for sent in (signal.SIGTERM, signal.SIGKILL):
            for pid in _session(self._pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, sent if pid != self._pid else signal.SIGKILL)
            deadline = time.monotonic() + 5
            while _session(self._pid) - {self._pid} and time.monotonic() < deadline:
                self._read(0.05)
        os.close(self._terminal)
        os.waitpid(self._pid, 0)

    def type(self, text: str, timeout_s: float) -> None:
        """Type lines, each after the shell's next prompt has appeared.

        Raises:
            CommandFailed: a command's exit code is not 0; the message has the terminal's output.
            TimeoutError: a command did not end within `timeout_s` seconds.
        """
        for line in text.splitlines():
            start = len(self.output)
            os.write(self._terminal, line.encode() + b"\n")
            code = self._wait(start, timeout_s)
            if code:
                raise CommandFailed(f"{line!r} ended with {code}:\n{printable(self.output[start:])}")

    def run_python(self, script: str, timeout_s: float) -> None:
        """Run a file with ``python -i``, or in the Python session that is already open.

        Raises:
            CommandFailed: the file raised an exception; the message has the terminal's output.
            TimeoutError: the file did not end within `timeout_s` seconds.
        """
        start = len(self.output)
        if not self._is_in_python:
            line = f"python -i {script}"
        else:
            line = f"exec(compile(open({script!r}).read(), {script!r}, 'exec'))"
        self._is_in_python = True
        os.write(self._terminal, line.encode() + b"\n")
        self._wait(start, timeout_s, PYTHON)
        start_of_answer = len(self.output)
        # What went wrong stands in sys.last_value, in a session as in a script.
        question = "print('<good>') if not hasattr(__import__('sys'), 'last_value') else print('<' + 'bad>')"
        os.write(self._terminal, question.encode() + b"\n")
        self._wait(start_of_answer, timeout_s, re.compile(rb"\n<good>|\n<bad>"))
        if b"\n<bad>" in self.output[start_of_answer:]:
            raise CommandFailed(f"{script} raised:\n{printable(self.output[start:start_of_answer])}")
        self._wait(start_of_answer, timeout_s, PYTHON)

    def leave_python(self, timeout_s: float) -> None:
        """End the Python session, if there is one.

        Raises the errors of `type`; the session's exit code must be 0.
        """
        if self._is_in_python:
            self._is_in_python = False
            self.type("exit()\n", timeout_s)

    def _wait(self, start: int, timeout_s: float, pattern: re.Pattern[bytes] = READY_OR_MORE) -> int:
        """Wait for a prompt; return the exit code that the prompt shows, or 0 if it shows none."""
        deadline = time.monotonic() + timeout_s
        while (found := pattern.search(self.output, start)) is None:
            if time.monotonic() > deadline:
                raise TimeoutError(f"no end within {timeout_s} s:\n{printable(self.output[start:])}")
            self._read(0.2)
        return int(found[1] or 0) if pattern.groups else 0

    def _read(self, timeout_s: float) -> None:
        if select.select([self._terminal], [], [], timeout_s)[0]:
            try:
                self.output += os.read(self._terminal, 1 << 16)
            except OSError:  # the last program that had the terminal is gone
                time.sleep(timeout_s)


class CommandFailed(Exception):
    """The exit code of a command was not 0."""


def printable(output: bytes) -> str:
    """Return the last 4,000 characters of a terminal's output, without carriage returns."""
    return output.decode(errors="replace").replace("\r\n", "\n")[-4000:]


def _session(leader: int) -> set[int]:
    """Return the ids of all processes of a session, whatever their job, from Linux's /proc."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[3]) == leader and fields[0] != "Z":
                found.add(int(stat.parent.name))
    return found
