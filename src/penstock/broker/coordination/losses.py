"""`Losses`: counts the unreadable records of a partition, and logs one line about them."""

from __future__ import annotations

_LOSSES_LISTED = 5
"""The most losses of one partition that the line in the broker's log describes; the others are counted."""


class Losses:
    """The records of one partition that could not be read: their number, and the first descriptions."""

    def __init__(self) -> None:
        self.count = 0
        self._listed: list[str] = []

    def add(self, what: str) -> None:
        """Count a record that could not be read; `what` describes it."""
        self.count += 1
        if len(self._listed) < _LOSSES_LISTED:
            self._listed.append(what)

    def damaged(self, segment: int, position: int, size: int) -> None:
        """Count a range of bytes of a segment that contains no valid batch as one unreadable record."""
        self.add(f"{size} bytes at position {position} of segment {segment} are no sound batch")

    def __str__(self) -> str:
        more = self.count - len(self._listed)
        return "; ".join(self._listed) + (f"; and {more} more" if more else "")
