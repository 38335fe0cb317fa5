"""Tests with the simulated network: connections keep order, correlation ids and limits."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest

from penstock.protocol.connection.client import ClientConnection
from penstock.protocol.connection.server import ServerConnection
from protocol.connection.simulation import World

SEEDS = range(12)


def run(seed: int) -> World:
    world = World(seed)
    world.run()
    return world


@pytest.fixture(scope="module")
def worlds() -> list[World]:
    return [run(seed) for seed in SEEDS]


def test_order_limits_and_correlation_hold(worlds: list[World]) -> None:
    """`World.run` checks these properties; the test checks that every kind of fault has occurred."""
    seen: Counter[str] = sum((world.seen for world in worlds), Counter())
    assert seen["answer"] > 1000
    assert seen["request"] > seen["answer"], "some have no answer, or their connection was cut"
    wanted = {
        "cut", "bad answer: another", "bad answer: large", "bad answer: small", "refused memory",
        "request beyond the limit", "request refused", "unasked", "CorrelationError", "FrameSizeError",
        "UnexpectedFrameError",
    }  # fmt: skip
    assert wanted - seen.keys() == set()


def test_a_seed_gives_the_same_again(worlds: list[World]) -> None:
    assert run(3).trace == worlds[3].trace
    assert worlds[3].trace != worlds[4].trace


def fails() -> bool:
    """Return True if the simulation fails for one of a few seeds, with a message that names the seed."""
    found = [str(error) for error in map(error_of, range(6)) if error is not None]
    return any(re.match(r"seed \d, after \d+", text) for text in found)


def error_of(seed: int) -> AssertionError | None:
    try:
        run(seed)
    except AssertionError as error:
        return error
    return None


class TestWhatItFinds:
    """Tests that the simulation fails for defects that are patched into the connections."""

    def test_requests_left_in_the_shared_buffer(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def keep_nothing(self: Any) -> None:
            self.rest = None

        monkeypatch.setattr(ServerConnection, "_keep_rest", keep_nothing)
        assert fails()

    def test_memory_that_is_never_given_back(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(ServerConnection, "_return_buffer", lambda self: setattr(self, "_buffer", None))
        assert fails()

    def test_two_requests_open_at_a_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        whole = ServerConnection.next_request

        def next_request(self: Any, is_paused: bool = False) -> memoryview | None:
            self._is_open = False
            return whole(self, is_paused)

        monkeypatch.setattr(ServerConnection, "next_request", next_request)
        assert fails()

    def test_answers_that_are_not_compared(self, monkeypatch: pytest.MonkeyPatch) -> None:
        whole = ClientConnection.next_answer

        def next_answer(self: Any) -> Any:
            found = whole(self)
            if found is not None and len(self._in_flight) > 1:
                self._in_flight.rotate()
            return found

        monkeypatch.setattr(ClientConnection, "next_answer", next_answer)
        assert fails()

    def test_sizes_that_are_not_checked(self, monkeypatch: pytest.MonkeyPatch) -> None:
        begin = ClientConnection.__init__

        def unlimited(self: Any, *arguments: Any, **options: Any) -> None:
            begin(self, *arguments, **options)
            self._frames._size_max = 1 << 30

        monkeypatch.setattr(ClientConnection, "__init__", unlimited)
        assert fails()
