"""The pace of a client whose session is renewed while it sends."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator

PACE_S = 0.003
"""Seconds between two requests. A login takes about as long, so that requests meet each renewal."""


def paced(seconds: float) -> Iterator[int]:
    """Yield 0, 1, 2, ... at the pace of PACE_S, until so many seconds are over."""
    end = time.monotonic() + seconds
    for number in itertools.count():
        if time.monotonic() >= end:
            return
        yield number
        time.sleep(PACE_S)
