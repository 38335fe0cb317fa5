"""Output of commands, and their end: for an error, one line on stderr and an exit code, no traceback.

Exit codes follow the shell's conventions: 1 for a failure, 2 for a wrong option, 130 for Ctrl-C, 141 if the
reader of a pipe has ended. Set PENSTOCK_TRACEBACK=1 to see where an error came from.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Sequence

from penstock.common.errno_advice import advice_for
from penstock.errors import ConfigError, PenstockError
from penstock.printable import printable, printable_bytes

FAILURE, WRONG_USE, INTERRUPTED, PIPE_CLOSED = 1, 2, 130, 141


def guarded(call: Callable[[], int]) -> int:
    """Call `call` and return an exit code; print an exception as one line on stderr."""
    try:
        code = call()
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        _forget_stdout()
        return PIPE_CLOSED
    except KeyboardInterrupt:
        return INTERRUPTED
    except (Exception, SystemExit) as error:
        if isinstance(error, SystemExit):
            return error.code if isinstance(error.code, int) else int(error.code is not None)
        if os.environ.get("PENSTOCK_TRACEBACK"):
            raise
        say(one_line(error))
        return WRONG_USE if isinstance(error, ConfigError) else FAILURE


def open_missing_streams() -> None:
    """Open /dev/null for each standard stream that was closed when the process started.

    Python uses None for such a stream, and its descriptor would become that of the first file or socket.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115  open to the end


def put(line: str = "", *, bold: bool = False) -> None:
    """Write one line to stdout. On a terminal, escape unprintable characters (`penstock.printable`)."""
    if is_terminal():
        line = printable(line, "\t")
        if bold and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb":
            line = f"\x1b[1m{line}\x1b[0m"
    print(line)


def readable(text: str) -> str:
    """Return a table cell's text with unprintable characters escaped, as it is printed and measured."""
    return printable(text) if is_terminal() else text


def put_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table with aligned columns; numbers are aligned right."""
    rows = [[readable(cell) for cell in row] for row in rows]
    table = [head, *rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    is_number = [
        all(row[at].lstrip("-").isdigit() or row[at] == "-" for row in rows) for at in range(len(head))
    ]
    for row in table:
        cells = [
            cell.rjust(width) if number else cell.ljust(width)
            for cell, width, number in zip(row, widths, is_number, strict=True)
        ]
        put("  ".join(cells).rstrip())


def put_bytes(data: bytes) -> None:
    """Write bytes to stdout and flush.

    On a terminal, escape unprintable characters except line feeds and tabs.
    """
    sys.stdout.buffer.write(printable_bytes(data, "\n\t") if is_terminal() else data)
    sys.stdout.buffer.flush()


def counted(count: int, noun: str) -> str:
    """Return a number with its noun, as in ``1 topic`` and ``2 topics``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def note(line: str) -> None:
    """Write one informational line to stderr."""
    print(printable(line), file=sys.stderr)


def is_terminal() -> bool:
    """Return True if stdout is a terminal."""
    return sys.stdout.isatty()


def say(line: str) -> None:
    """Write one line for the user to stderr, with the prefix ``penstock:``."""
    waiting = sys.modules.get("penstock.cli.waiting")
    if waiting is not None:
        waiting.step_aside()
    with contextlib.suppress(OSError):  # a closed stderr: the exit code still reports the error
        print(f"penstock: {printable(line)}", file=sys.stderr, flush=True)


def one_line(error: BaseException) -> str:
    """Return the message of `error` in one line, with advice if there is some."""
    if isinstance(error, PenstockError):
        return _text(error)
    if isinstance(error, OSError):
        path = f"{error.filename}: " if error.filename is not None else ""
        advice = advice_for(error)
        return f"{path}{advice}" if advice else _text(error)
    return f"unexpected {type(error).__name__}: {_text(error)} (a bug; PENSTOCK_TRACEBACK=1 shows where)"


def _text(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _forget_stdout() -> None:
    """Redirect stdout to /dev/null, so that the interpreter's last flush cannot fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
