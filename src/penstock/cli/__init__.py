"""The command line: one module for each group of commands, such as ``penstock topic``.

`penstock broker` has to start fast, so its command line is parsed without click if it has no mistakes;
``--help``, mistakes and all other commands go through click. Both ways use the table of options in
`penstock.broker.command_line`.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence

from penstock.cli.outcome import guarded, open_missing_streams

GARBAGE_OBJECTS = 50_000
"""The number of new objects (less freed ones) after which Python collects its youngest garbage generation."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; `penstock.cli.outcome` lists the codes."""
    if arguments is None:
        open_missing_streams()
    words = list(sys.argv[1:] if arguments is None else arguments)
    if arguments is None and words[:1] == ["sql"]:
        from penstock.cli.sql_process import end_with, without_pandas

        without_pandas()
        end_with(guarded(lambda: _run(words, is_process=True)))
    code = guarded(lambda: _run(words, is_process=arguments is None))
    if arguments is None:
        # The process ends: to look through all objects for garbage now takes longer than the end itself.
        gc.freeze()
        gc.disable()
    return code


def _run(words: list[str], *, is_process: bool) -> int:
    if words[:1] == ["broker"]:
        from penstock.broker import command_line

        settings = command_line.read_plain(words[1:])
        if settings is not None:
            return command_line.run(settings)
    if is_process:
        # What a command imports stays: looking through it for garbage takes a tenth of a short command.
        gc.set_threshold(GARBAGE_OBJECTS, 20, 20)
    from penstock.cli.commands import run

    return run(words, is_process=is_process)
