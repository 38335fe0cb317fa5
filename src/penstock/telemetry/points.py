"""`Point`: one value of one metric, as a client pushes it."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

Labels = tuple[tuple[str, str], ...]
"""Labels as pairs of name and value, sorted by name, so that they can be a key."""


class MetricKind(Enum):
    """The meaning of a metric's value: a gauge, a total, or the growth since the last push."""

    GAUGE = "gauge"
    """The metric is a current value."""
    DELTA = "delta"
    """The metric is the growth of a sum since the last push."""
    TOTAL = "total"
    """The metric is a sum since the start of the client."""


class Point(NamedTuple):
    """One value of one metric.

    `time_ns` and `start_ns` are nanoseconds since 1970: the time of the measurement, and the time from which
    a sum is counted, or 0 if the client does not send it.
    """

    name: str
    kind: MetricKind
    value: float
    labels: Labels = ()
    time_ns: int = 0
    start_ns: int = 0
