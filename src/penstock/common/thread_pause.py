"""A pause that a thread makes between pieces of long work, so that the event loop's thread runs meanwhile."""

from __future__ import annotations

import time

PAUSE_S = 0.0002
"""How long `pause` lets others run."""


def pause() -> None:
    """Sleep for `PAUSE_S`: Python runs one thread at a time, and this lets another one run."""
    time.sleep(PAUSE_S)
