"""The list of functions to call when an exception ends the ``with`` block of a broker or cluster.

pytest's plugin adds one such function. This module imports nothing, so that the plugin can import it in
every run of pytest, with or without a broker.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

watchers: list[Callable[[Any], None]] = []
"""Functions to call with a broker or cluster before an exception stops it. Empty outside of tests."""


def announce(served: object, error: BaseException | None) -> None:
    """Call the `watchers` with `served`, a broker or cluster, if `error` has ended its ``with`` block."""
    if error is not None:
        for watcher in watchers:
            watcher(served)
