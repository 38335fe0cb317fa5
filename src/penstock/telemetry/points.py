"""`Point`: one value of one metric, as a client pushes it."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

Labels = tuple[tuple[str, str], ...]
"""Labels as pairs of name and value, sorted by name, so that they can be a key."""


class Kind(Enum):
    """What the value of a metric means."""

    GAUGE = "gauge"
    """The value as it is now."""
    DELTA = "delta"
    """By how much a sum has grown since the push before."""
    TOTAL = "total"
    """A sum since the client has begun."""


class Point(NamedTuple):
    """One value of one metric.

    `time_ns` and `start_ns` are nanoseconds since 1970: when it was measured, and since when it counts; 0
    where that is not said.
    """

    name: str
    kind: Kind
    value: float
    labels: Labels = ()
    time_ns: int = 0
    start_ns: int = 0
