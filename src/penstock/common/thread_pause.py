"""A pause for threads between pieces of long work, so that the event loop's thread runs meanwhile."""

from __future__ import annotations

import time

PAUSE_S = 0.0002
"""How long `pause` lets others run."""


def pause() -> None:
    """Sleep for `PAUSE_S`, so that another thread runs: Python runs one thread at a time."""
    time.sleep(PAUSE_S)
