"""The highest error code of each release of Apache Kafka."""

from __future__ import annotations

HIGHEST_ERRORS: tuple[tuple[tuple[int, ...], int], ...] = (
    ((0, 8, 0), 11),
    ((0, 8, 1), 12),
    ((0, 8, 2), 20),
    ((0, 9), 31),
    ((0, 10, 0), 35),
    ((0, 10, 1), 43),
    ((0, 10, 2), 44),
    ((0, 11), 55),
    ((1, 0), 60),
    ((1, 1), 71),
    ((2, 0), 72),
    ((2, 1), 76),
    ((2, 2), 81),
    ((2, 3), 82),
    ((2, 4), 87),
    ((2, 8), 104),
    ((3, 0), 105),
    ((3, 5), 112),
    ((3, 9), 127),
    ((4, 0), 129),
    ((4, 1), 133),
    ((4, 4), 136),
)
"""Pairs of a release and its highest error code, which also applies to later releases up to the next pair's
release.
"""


def highest_error(numbers: tuple[int, ...]) -> int:
    """Return the greatest error code of a release, given by the numbers of its name: ``(0, 10, 2)``."""
    return max(code for since, code in HIGHEST_ERRORS if since <= numbers)
