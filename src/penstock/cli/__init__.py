"""The command line: ``penstock broker | topic | group | produce | consume | event | wire | schema | demo``.

One module per noun. `penstock broker` is started by tests and by people who wait for it, so its plain
form goes straight to the broker; everything else, `--help` and every mistake included, goes through
click. Both read the same table of options (`penstock.cli.broker`).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from penstock.cli.outcome import guarded


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; `penstock.cli.outcome` says what the codes mean."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    return guarded(lambda: _run(words, is_process=arguments is None))


def _run(words: list[str], *, is_process: bool) -> int:
    if words[:1] == ["broker"]:
        from penstock.cli import broker

        settings = broker.read_plain(words[1:])
        if settings is not None:
            return broker.run(settings)
    from penstock.cli.commands import run

    return run(words, is_process=is_process)
