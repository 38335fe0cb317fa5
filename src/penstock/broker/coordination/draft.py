"""`Draft`: the changes that one request or timer makes to a group, before they are stored."""

from __future__ import annotations

from typing import Any, Generic, Protocol, Self, TypeVar


class DraftState(Protocol):
    """The interface of a group's state that a `Draft` copies and changes."""

    def copy(self) -> Self:
        """Return a copy that can be changed without changing this state."""

    def apply(self, change: Any) -> None:
        """Apply one change to the state."""


S = TypeVar("S", bound=DraftState)


class Draft(Generic[S]):
    """A copy of a group's state with changes that are not stored yet. The group's own state stays the same.

    The draft copies the state at the first change, because most heartbeats change nothing.
    """

    __slots__ = ("_is_copy", "changes", "state")

    def __init__(self, state: S) -> None:
        self.state = state
        self.changes: list[Any] = []
        self._is_copy = False

    def make(self, *changes: Any) -> None:
        """Apply changes to the draft's `state`."""
        if not self._is_copy:
            self.state = self.state.copy()
            self._is_copy = True
        for change in changes:
            self.state.apply(change)
            self.changes.append(change)
