"""A pause for threads between pieces of long work, so that the event loop's thread runs meanwhile."""

from __future__ import annotations

import time

PAUSE_S = 0.0002
"""The seconds that `pause` lets other threads run."""


def pause() -> None:
    """Sleep for `PAUSE_S`, so that another thread runs: Python runs one thread at a time."""
    time.sleep(PAUSE_S)
