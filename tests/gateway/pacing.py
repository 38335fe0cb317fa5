"""A generator that paces a client's requests, for tests in which its session is renewed meanwhile."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator

PACE_S = 0.003
"""The pause between two requests in seconds.

It is about as long as a login, so that requests coincide with each renewal of the session.
"""


def paced(seconds: float) -> Iterator[int]:
    """Yield 0, 1, 2, ... with a pause of PACE_S between them, until `seconds` are over."""
    end = time.monotonic() + seconds
    for number in itertools.count():
        if time.monotonic() >= end:
            return
        yield number
        time.sleep(PACE_S)
