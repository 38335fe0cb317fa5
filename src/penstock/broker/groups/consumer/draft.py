"""A draft: what one request or timer would make of a group, before it is stored."""

from __future__ import annotations

from penstock.broker.groups.consumer.state import Change, GroupState


class Draft:
    """A state of a group with changes that are not stored yet. The group's own state stays as it is.

    The state is copied with the first change: most heartbeats make none.
    """

    __slots__ = ("_is_copy", "changes", "state")

    def __init__(self, state: GroupState) -> None:
        self.state = state
        self.changes: list[Change] = []
        self._is_copy = False

    def make(self, *changes: Change) -> None:
        """Add changes; `state` has them from now on."""
        if not self._is_copy:
            self.state = self.state.copy()
            self._is_copy = True
        for change in changes:
            self.state.apply(change)
            self.changes.append(change)
