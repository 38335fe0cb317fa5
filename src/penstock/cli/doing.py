"""Prints what a command has changed, in one line on stdout, unless ``-q`` is given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from penstock.cli.outcome import put

QUIET = "penstock.quiet"


def quiet_option() -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the option ``-q``, which suppresses all output except errors."""

    def remember(context: click.Context, parameter: click.Parameter, is_quiet: bool) -> None:
        context.meta[QUIET] = is_quiet

    return click.option(
        "-q",
        "--quiet",
        is_flag=True,
        expose_value=False,
        callback=remember,
        help="Say nothing but errors.",
    )


def is_quiet() -> bool:
    """Return True if the current command was called with ``-q``."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(QUIET))


def done(line: str) -> None:
    """Print a line about a completed change, unless ``-q`` is given."""
    if not is_quiet():
        put(line)


def listed(words: list[str]) -> str:
    """Join words as in a sentence: ``a``, ``a and b``, ``a, b and c``."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
