"""The time limit for closing a client at the end of a `with` block."""

from __future__ import annotations

INTERRUPTED_PATIENCE_S = 0.5
"""The time limit in seconds for closing a client after Ctrl-C or a cancellation."""


def closing_patience_s(exc_type: type[BaseException] | None) -> float | None:
    """Return the time limit in seconds for closing a client at the end of a `with` block.

    `exc_type` is the exception that has ended the block. The limit is `INTERRUPTED_PATIENCE_S` after Ctrl-C
    or a cancellation, else None (no limit).
    """
    if exc_type is not None and not issubclass(exc_type, Exception):
        return INTERRUPTED_PATIENCE_S
    return None
