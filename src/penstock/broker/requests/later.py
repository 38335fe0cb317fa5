"""Responses that wait for the results of calls to another part of the broker, or to another node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from penstock.broker.requests.purgatory import Purgatory, Wait

T = TypeVar("T")


class Later:
    """Collects the results of pending calls that one response depends on.

    The object itself is the purgatory key of the waiting request.
    """

    __slots__ = ("_left", "_purgatory")

    def __init__(self, purgatory: Purgatory) -> None:
        self._purgatory = purgatory
        self._left = 0

    def expect(self, take: Callable[[T], object]) -> Callable[[T], None]:
        """Add a pending call; return its callback, to be called once, which passes the result to `take`."""
        self._left += 1

        def done(outcome: T) -> None:
            try:
                take(outcome)
            finally:
                self._left -= 1
                if not self._left:
                    self._purgatory.notify(self)

        return done

    def answer(self, deadline: float, give: Callable[[], Any]) -> Any:
        """Return the result of `give`; while calls are pending, return a `Wait` that calls `give` later.

        `give` is called when all calls are answered, or at `deadline` (seconds of the monotonic clock).
        """
        return Wait((self,), deadline, answer=give) if self._left else give()
