"""A progress line for calls that take seconds, on terminals and in notebooks.

The line is written to stderr after the first second, updated four times a second at most, and removed when
the call ends. In a notebook, the line is an output of the cell, and shows a summary when the call ends
(a carriage return would leave an empty line on a red background there). The line needs no thread, and no
library except the IPython of the notebook. Elsewhere (pipes, files, services) nothing is written.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from types import TracebackType
from typing import Any

SHOWN_AFTER_S = 1.0
"""Duration of a call in seconds after which the progress line appears."""

INTERVAL_S = 0.25
BAR_COLUMNS = 24
SWITCH = "PENSTOCK_PROGRESS"
"""The environment variable for calls without a `progress` argument: 0 never shows the line, 1 always does."""


def is_wanted(wanted: bool | None) -> bool:
    """Return True if progress is to be shown.

    If `wanted` is None, ``PENSTOCK_PROGRESS`` decides; without it, a terminal or notebook gets a line.
    """
    if wanted is not None:
        return wanted
    switch = os.environ.get(SWITCH, "")
    if switch in ("0", "1"):
        return switch == "1"
    try:
        return sys.stderr.isatty() or _is_notebook()
    except (AttributeError, ValueError):  # no stderr, or one that is closed
        return False


def _is_notebook() -> bool:
    shell = sys.modules.get("IPython")
    get_shell = getattr(shell, "get_ipython", None)
    return type(get_shell()).__name__ == "ZMQInteractiveShell" if callable(get_shell) else False


class ProgressLine:
    """A progress line for `total` steps: a context manager; `add` reports the steps that are done."""

    def __init__(self, what: str, unit: str, total: int | None, wanted: bool | None = None) -> None:
        """Prepare the line for a task called `what`, counted in `unit`.

        A `total` of None means unknown: the line then has no bar. `wanted`: see `is_wanted`.
        """
        self._what = what
        self._unit = unit
        self.total = total
        self.is_wanted = is_wanted(wanted)
        self._done = 0
        self._bytes = 0
        self._began_at = time.monotonic()
        self._next_at = self._began_at + SHOWN_AFTER_S
        self._shown = 0
        """Width in characters of the line on the screen; 0 if no line is shown."""
        self._is_in_notebook = self.is_wanted and _is_notebook()
        self._output: Any = None
        """IPython's handle of the cell's output, with which the line is replaced; None before the first
        line.
        """

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown:
            self._write(self.summary(time.monotonic() - self._began_at) if self._is_in_notebook else "")

    def add(self, count: int, size_bytes: int) -> None:
        """Report that `count` more steps and `size_bytes` more bytes are done."""
        if not self.is_wanted:
            return
        self._done += count
        self._bytes += size_bytes
        now = time.monotonic()
        if now >= self._next_at:
            self._next_at = now + INTERVAL_S
            self._write(self.line(now - self._began_at))

    def line(self, elapsed_s: float) -> str:
        """Return the text of the progress line after `elapsed_s` seconds of the call."""
        rate = self._bytes / 1e6 / elapsed_s
        said = f"{self._done:,} {self._unit}, {rate:,.0f} MB/s"
        if not self.total:
            return f"{self._what}: {said}, {_clock(elapsed_s)}"
        part = min(1.0, self._done / self.total)
        filled = round(part * BAR_COLUMNS)
        bar = "█" * filled + "░" * (BAR_COLUMNS - filled)
        left = f", {_clock(elapsed_s * (1 - part) / part)} left" if part else ""
        return f"{self._what} {bar} {part:4.0%}  {said}{left}"

    def summary(self, elapsed_s: float) -> str:
        """Return the text that stays in a notebook after a call of `elapsed_s` seconds."""
        rate = self._bytes / 1e6 / max(elapsed_s, 1e-9)
        return f"{self._what}: {self._done:,} {self._unit} in {_clock(elapsed_s)}, {rate:,.0f} MB/s"

    def _show(self, line: str) -> None:
        """Show the line as an output of the notebook cell, replacing the previous one."""
        from IPython.display import display

        text = {"text/plain": line}
        if self._output is None:
            self._output = display(text, raw=True, display_id=True)
        else:
            self._output.update(text, raw=True)

    def _write(self, line: str) -> None:
        if self._is_in_notebook:
            try:
                self._show(line)
            except Exception:  # a notebook of another kind: progress is not worth the call
                self.is_wanted = False
            self._shown = len(line)
            return
        room = shutil.get_terminal_size().columns - 1
        line = line[:room]
        try:
            sys.stderr.write(f"\r{line:<{self._shown}}" + ("" if line else "\r"))
            sys.stderr.flush()
        except UnicodeEncodeError:
            ascii_line = line.replace("█", "#").replace("░", "-").encode("ascii", "replace").decode()
            sys.stderr.write(f"\r{ascii_line:<{self._shown}}")
        except (OSError, ValueError):  # the terminal is gone
            self.is_wanted = False
        self._shown = len(line)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
