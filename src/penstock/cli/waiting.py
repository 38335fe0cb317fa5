"""Shows on stderr what a command waits for, and for how long.

On a terminal this is one line, which is updated, and erased when other output follows. Elsewhere, a line is
printed when the waiting begins, when its reason changes, and when it is over.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator

from penstock.client.cluster.retry import Observer, Obstacle
from penstock.errors import NetworkError, RequestTimeoutError
from penstock.printable import printable

SILENCE_S = 1.5
"""Delays of up to this number of seconds are not shown."""

LOOK_EVERY_S = 0.25

WIPE = "\r\x1b[K"


class Waiting:
    """Shows on stderr, from its own thread, what the clients of this process wait for."""

    def __init__(self, *, is_terminal: bool) -> None:
        self._is_terminal = is_terminal
        self._observer = Observer()
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        self._is_line_shown = False
        self._told: str | None = None
        """The reason that was printed last, if stderr is not a terminal."""
        self._told_since = 0.0
        self._has_told_idle = False
        self.is_quiet = False
        self.idle_text: str | Callable[[], str] | None = None
        """The text to show while nothing delays the command; None for a command that ends soon."""
        self._active_at = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="penstock-waiting", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Erase the line about waiting, and show no more lines."""
        self._is_over.set()
        self.step_aside()

    def begin_idle(self, text: str | Callable[[], str]) -> None:
        """Set the text that is shown from now on while nothing delays the command."""
        self.idle_text = text
        self._has_told_idle = False

    def step_aside(self) -> None:
        """Erase the line about waiting, since other output follows on stdout or stderr."""
        self._active_at = time.monotonic()
        if self._is_line_shown:
            with self._lock:
                self._wipe()

    def look(self, now: float) -> None:
        """Show, update or erase the line about a delay; `now` is the monotonic time in seconds."""
        obstacle = self._observer.look(now)
        if obstacle is None or now - obstacle.since < SILENCE_S:
            obstacle = None
        with self._lock:
            if self._is_over.is_set() or self.is_quiet:
                return
            if self._is_terminal:
                self._show(obstacle, now)
            else:
                self._tell(obstacle, now)

    def _run(self) -> None:
        while not self._is_over.wait(LOOK_EVERY_S):
            self.look(time.monotonic())

    def _show(self, obstacle: Obstacle | None, now: float) -> None:
        if obstacle is not None:
            text, since = f"waiting: {obstacle.text}", obstacle.since
        elif self.idle_text is not None and now - self._active_at >= SILENCE_S:
            text, since = _said(self.idle_text), self._active_at
        else:
            self._wipe()
            return
        self._is_line_shown = True
        _write(f"{WIPE}penstock: {_cut(text, _columns() - 24)} ({now - since:.0f} s)")

    def _tell(self, obstacle: Obstacle | None, now: float) -> None:
        if obstacle is not None:
            if obstacle.text != self._told:
                self._told_since = min(obstacle.since, self._told_since) if self._told else obstacle.since
                self._told = obstacle.text
                _write(f"penstock: waiting for {now - obstacle.since:.0f} s: {_cut(obstacle.text)}\n")
        elif self._told is not None:
            _write(f"penstock: going on after {now - self._told_since:.0f} s\n")
            self._told = None
        elif self.idle_text is not None and not self._has_told_idle and now - self._active_at >= SILENCE_S:
            self._has_told_idle = True
            _write(f"penstock: {_cut(_said(self.idle_text))}\n")

    def _wipe(self) -> None:
        if self._is_line_shown:
            self._is_line_shown = False
            _write(WIPE)


def _said(text: str | Callable[[], str]) -> str:
    return text if isinstance(text, str) else text()


def _columns() -> int:
    """Return the width of the terminal, since a line that wraps cannot be erased."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def _cut(text: str, most: int = 300) -> str:
    """Return `text` as one line of at most `most` characters, without control characters."""
    line = printable(" ".join(text.split()))
    most = max(most, 20)
    return line if len(line) <= most else f"{line[: most - 3]}..."


def _write(text: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # where nothing reads stderr any more
        sys.stderr.write(text)
        sys.stderr.flush()


def pause(seconds: float, ask: Callable[[], object] | None = None) -> None:
    """Sleep for `seconds`. Meanwhile, call the function `ask` repeatedly to send requests to the brokers.

    Without a pending request, a lost broker would not be noticed. Errors of `ask` are ignored; the caller's
    next request reports them.
    """
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(left, LOOK_EVERY_S))
        if ask is not None:
            with contextlib.suppress(NetworkError, RequestTimeoutError):
                ask()


_present: Waiting | None = None


@contextlib.contextmanager
def shown() -> Iterator[None]:
    """Return a context manager that shows on stderr what the command waits for."""
    global _present
    waiting = _present = Waiting(is_terminal=sys.stderr.isatty())
    waiting.start()
    try:
        yield
    finally:
        waiting.stop()
        _present = None


def step_aside() -> None:
    """Erase the line about waiting, if there is one, since other output follows."""
    if _present is not None:
        _present.step_aside()


def idle(text: str | Callable[[], str]) -> None:
    """Set the text to show while nothing delays the command, or a function that returns the current text."""
    if _present is not None:
        _present.begin_idle(text)


def be_quiet() -> None:
    """Stop showing on stderr what the command waits for."""
    if _present is not None:
        _present.is_quiet = True
