"""Ranges of message versions in the notation of definitions: ``0+``, ``3``, ``1-4``, ``none``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from penstock.common.suggestions import short_repr

OPEN_END = 32767
"""The highest version that an int16 can carry: the end of ranges such as ``0+``."""


class Versions(NamedTuple):
    """The versions from `lowest` to `highest`, both included; empty when `highest` is below `lowest`."""

    lowest: int
    highest: int

    @classmethod
    def parse(cls, text: str) -> Versions:
        """Parse a range of versions.

        Raises:
            ValueError: the text is no range of versions.
        """
        text = text.strip()
        if text == "none":
            return NO_VERSIONS
        low, dash, high = text.partition("-")
        if text.endswith("+"):
            low, dash, high = text[:-1], "-", str(OPEN_END)
        if not (_is_number(low) and (not dash or _is_number(high))):
            raise ValueError(f"{short_repr(text)} is no range of versions: write 3, 1-4, 2+ or none")
        versions = cls(int(low), int(high) if dash else int(low))
        if not versions.lowest <= versions.highest <= OPEN_END:
            raise ValueError(f"{short_repr(text)} is an empty or impossible range of versions")
        return versions

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.lowest <= version <= self.highest

    def __bool__(self) -> bool:
        return self.lowest <= self.highest

    def __str__(self) -> str:
        if not self:
            return "none"
        if self.highest == OPEN_END:
            return f"{self.lowest}+"
        return str(self.lowest) if self.lowest == self.highest else f"{self.lowest}-{self.highest}"

    def covers(self, other: Versions) -> bool:
        """Return True if this range contains every version of `other`."""
        return not other or (self.lowest <= other.lowest and other.highest <= self.highest)

    def intersect(self, other: Versions) -> Versions:
        """Return the versions in both ranges."""
        both = Versions(max(self.lowest, other.lowest), min(self.highest, other.highest))
        return both if both else NO_VERSIONS

    def join(self, other: Versions) -> Versions:
        """Return the union of both ranges.

        Raises:
            ValueError: there is a gap between the two.
        """
        if not self or not other:
            return self or other
        if max(self.lowest, other.lowest) > min(self.highest, other.highest) + 1:
            raise ValueError(f"versions {self} and {other} leave a gap")
        return Versions(min(self.lowest, other.lowest), max(self.highest, other.highest))

    def up_to(self, highest: int) -> range:
        """Return the versions of this range that are at most `highest`."""
        return range(self.lowest, min(self.highest, highest) + 1)


def turning_points(ranges: Iterable[Versions], within: Versions) -> list[int]:
    """Return the first version of `within`, and those at which one of `ranges` begins or has just ended.

    Between two of these points every version is in the same `ranges`, so checking the points is enough.
    """
    points = {within.lowest} if within else set()
    for each in ranges:
        points.update(version for version in (each.lowest, each.highest + 1) if version in within)
    return sorted(points)


def _is_number(text: str) -> bool:
    """Return True if a text consists of one to nine ASCII digits.

    Longer numbers are not accepted, because Python converts them slowly.
    """
    return text.isascii() and text.isdecimal() and len(text) < 10


NO_VERSIONS = Versions(0, -1)
ALL_VERSIONS = Versions(0, OPEN_END)
