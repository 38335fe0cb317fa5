"""What a broker keeps in memory because peers have asked for it, all within one budget.

Fetch sessions, member ids given away, members of groups, committed offsets and answers that are not read:
each is small, and each can be asked for again and again. Every kind is added here with a function that
returns its bytes and, where it can be evicted, one that evicts the oldest of it. `has_room_for` is asked
before more is kept. Kinds that cannot be given up may fill three quarters of the budget, so that sessions
and answers always find some.

Bytes are those of the objects as they are in memory, estimated. Independent of what is kept.
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
    """The budget of one broker. `limit_bytes` is `penstock.kept.state.bytes.max`."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.given_up: dict[str, int] = {}
        """How often something of a kind was evicted because a limit was reached."""
        self.refused = 0
        """How often there was no room."""
        self._kinds: list[_Kind] = []

    def add(
        self, name: str, size: Callable[[], int], give_up: Callable[[], bool] | None = None, *, loss: int = 0
    ) -> None:
        """Count a kind of state. `size` returns its bytes now.

        `give_up` makes room by ending the part of it that is the least useful, and returns whether there was
        one. Kinds of the least `loss` are given up first.
        """
        self._kinds.append(_Kind(name, size, give_up, loss))
        self._kinds.sort(key=lambda kind: kind.loss)

    def sizes(self) -> dict[str, int]:
        """Return the bytes of every kind."""
        return {kind.name: kind.size() for kind in self._kinds}

    def has_room_for(self, size: int, *, stays: bool = False) -> bool:
        """Make room for `size` bytes more, if need be by giving up what can be; whether there is room.

        `stays` means that they are of a kind that is not evicted.
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
