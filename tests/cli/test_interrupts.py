"""Tests that Ctrl-C ends a process, even one with a blocking handler, exit function or thread."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

START = """
import atexit, signal, sys, threading, time
from penstock.cli.interrupts import be_interruptible, before_the_end
be_interruptible()
"""

PROGRAMS = {
    "a handler of another library": """
signal.signal(signal.SIGINT, lambda *_: None)
print(flush=True)
time.sleep(600)
""",
    "clean-up that hangs": """
try:
    print(flush=True)
    time.sleep(600)
finally:
    time.sleep(600)
""",
    "a thread that hangs": """
threading.Thread(target=time.sleep, args=(600,)).start()
print(flush=True)
time.sleep(600)
""",
    "the end of the process": """
atexit.register(time.sleep, 600)
print(flush=True)
time.sleep(600)
""",
    "a signal of another kind before": """
signal.signal(signal.SIGUSR1, lambda *_: None)
signal.raise_signal(signal.SIGUSR1)
try:
    print(flush=True)
    time.sleep(600)
finally:
    time.sleep(600)
""",
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_an_interrupt_ends_the_process(program: str) -> None:
    with started(START + program) as process:
        assert process.wait(60) == 130


def test_last_acts_are_done_and_their_errors_are_nothing() -> None:
    acts = "before_the_end(lambda: 1 / 0); before_the_end(lambda: print('done', flush=True))\n"
    with started(START + acts + PROGRAMS["clean-up that hangs"]) as process:
        assert process.wait(60) == 130
        assert process.stdout is not None
        assert process.stdout.read() == b"done\n"


def test_the_second_interrupt_ends_at_once() -> None:
    program = "import penstock.cli.interrupts as i; i.PATIENCE_S = 600\n" + PROGRAMS["clean-up that hangs"]
    with started(START + program) as process:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        process.send_signal(signal.SIGINT)
        # By the thread, or by the exception that the interpreter raises in clean-up.
        assert process.wait(60) in (130, -signal.SIGINT)


def started(program: str) -> subprocess.Popen[bytes]:
    """Start a program, interrupt it once it has printed a line, and return its process."""
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    return process


def test_an_interrupt_that_comes_in_a_finalizer_is_no_traceback() -> None:
    program = START + (
        "class Held:\n"
        "    def __init__(self, error): self.error = error\n"
        "    def __del__(self): raise self.error\n"
        "Held(KeyboardInterrupt())\n"
        "Held(ValueError('told'))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "KeyboardInterrupt" not in done.stderr
    assert "ValueError: told" in done.stderr
