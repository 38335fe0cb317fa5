"""One memory budget for all state that a broker keeps for clients.

Fetch sessions, assigned but unused member ids, members of groups, committed offsets and unread answers are
small, and clients can ask for any number of them. Every kind is registered here with a function that returns
its bytes and, if it can be evicted, one that evicts its oldest. Callers call `has_room_for` before they store
more. Kinds that cannot be evicted may fill three quarters of the budget, so that there is always room for
sessions and answers.

Byte counts are estimates of the objects' memory. The module does not access the objects.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class _Kind(NamedTuple):
    name: str
    size: Callable[[], int]
    give_up: Callable[[], bool] | None
    loss: int


class KeptState:
    """The memory budget of one broker for state kept for clients.

    `limit_bytes` is `penstock.kept.state.bytes.max`.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.given_up: dict[str, int] = {}
        """A dict from kind of state to the number of its evictions, made because the budget was used up."""
        self.refused = 0
        """The number of calls of `has_room_for` that returned False."""
        self._kinds: list[_Kind] = []

    def add(
        self, name: str, size: Callable[[], int], give_up: Callable[[], bool] | None = None, *, loss: int = 0
    ) -> None:
        """Register a kind of state. `size` returns the memory that it takes now, in bytes.

        `give_up` evicts the least useful entry of this kind, and returns False if there is none. Kinds with
        the least `loss` are evicted first.
        """
        self._kinds.append(_Kind(name, size, give_up, loss))
        self._kinds.sort(key=lambda kind: kind.loss)

    def sizes(self) -> dict[str, int]:
        """Return a dict from the name of each kind of state to its memory in bytes."""
        return {kind.name: kind.size() for kind in self._kinds}

    def has_room_for(self, size: int, *, stays: bool = False) -> bool:
        """Make room for `size` bytes more, by evicting if necessary; return True if there is room.

        `stays` is True if the new bytes belong to a kind of state that cannot be evicted.
        """
        if stays:
            lasting = sum(kind.size() for kind in self._kinds if kind.give_up is None)
            if lasting + size > self.limit_bytes - self.limit_bytes // 4:
                self.refused += 1
                return False
        while sum(kind.size() for kind in self._kinds) + size > self.limit_bytes:
            if not self._give_up_one():
                self.refused += 1
                return False
        return True

    def _give_up_one(self) -> bool:
        for kind in self._kinds:
            if kind.give_up is not None and kind.give_up():
                self.given_up[kind.name] = self.given_up.get(kind.name, 0) + 1
                return True
        return False
