"""Tests that TLS handshakes and other work alternate on the event loop, with a simulated loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.broker.network.handshake_turns import TURN_S, HandshakeTurns

COST_S = TURN_S / 2


class Loop:
    """A stand-in for the event loop: the test runs its turns, and handshakes advance its time."""

    def __init__(self) -> None:
        self.now = 0.0
        self.soon: list[Callable[[], None]] = []

    def time(self) -> float:
        return self.now

    def call_soon(self, action: Callable[[], None]) -> None:
        self.soon.append(action)

    def turn(self) -> None:
        actions, self.soon = self.soon, []
        for action in actions:
            action()


def test_a_turn_handles_what_fits_in_the_order_of_arrival() -> None:
    loop, done = Loop(), list[int]()
    as_loop: Any = loop
    turns = HandshakeTurns(as_loop)

    def handshake(number: int) -> Callable[[], None]:
        def run() -> None:
            loop.now += COST_S
            done.append(number)

        return run

    at_once = [turns.run(handshake(number)) for number in range(5)]
    assert at_once == [True, True, False, False, False]
    loop.turn()
    assert done == [0, 1, 2, 3]
    assert not turns.run(handshake(5))  # it came last
    loop.turn()
    assert done == [0, 1, 2, 3, 4, 5]
    loop.turn()
    loop.turn()
    assert not loop.soon  # nothing is left that would keep a processor busy
    assert turns.run(handshake(6))
    assert len(turns) == 0
