"""How long the end of a client may take."""

from __future__ import annotations

INTERRUPTED_PATIENCE_S = 0.5
"""Ctrl-C and cancellation leave a producer this long to send what it has accepted."""


def closing_patience_s(exc_type: type[BaseException] | None) -> float | None:
    """Return how long the end of a `with` block may flush: without a limit, unless the program is
    interrupted.
    """
    if exc_type is not None and not issubclass(exc_type, Exception):
        return INTERRUPTED_PATIENCE_S
    return None
