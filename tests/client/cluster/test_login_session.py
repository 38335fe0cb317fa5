"""Tests of re-authentication on a connection: which requests wait for it, and what happens to them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from penstock.client.cluster.login_session import LoginSession
from penstock.errors import AuthenticationError, NetworkError, PenstockError


class Line:
    """A stand-in for the connection, which records what is sent and the error that closes it."""

    def __init__(self) -> None:
        self.sent: list[object] = []
        self.cause: PenstockError | None = None

    def request(
        self, message: Any, version: int, timeout_s: float, *, at_once: bool = False
    ) -> asyncio.Future[Any]:
        assert at_once, "a request of the session must not wait for the session"
        if message == "refused":
            raise NetworkError("not connected")
        self.sent.append(message)
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        future.set_result(f"{message} answered")
        return future

    def send_only(self, message: Any, version: int, *, at_once: bool = False) -> None:
        assert at_once
        self.sent.append(message)

    def close(self, cause: PenstockError | None = None) -> None:
        self.cause = cause


Scenario = Callable[[Line, LoginSession, asyncio.Event], Coroutine[Any, Any, None]]


def play(scenario: Scenario, error: PenstockError | None = None) -> Line:
    """Run a scenario with a session whose login ends when the event is set.

    The login succeeds, or fails with `error`.
    """
    line = Line()

    async def run() -> None:
        accepted = asyncio.Event()

        async def log_in() -> None:
            await accepted.wait()
            if error is not None:
                raise error

        made: Callable[[], Awaitable[None]] = log_in
        await scenario(line, LoginSession(line, made), accepted)

    asyncio.run(run())
    return line


def test_what_waits_is_sent_in_order_after_the_login() -> None:
    async def scenario(line: Line, session: LoginSession, accepted: asyncio.Event) -> None:
        assert not session.must_wait()
        session.renew()
        assert session.must_wait()
        first: Any = session.hold("first", 1, 1.0)  # type: ignore[arg-type]
        session.hold_unanswered("second", 1)  # type: ignore[arg-type]
        given_up: Any = session.hold("given up", 1, 1.0)  # type: ignore[arg-type]
        refused: Any = session.hold("refused", 1, 1.0)  # type: ignore[arg-type]
        given_up.cancel()
        assert session.is_holding
        accepted.set()
        assert await first == "first answered"
        with pytest.raises(NetworkError, match="not connected"):
            await refused
        assert not session.must_wait()

    line = play(scenario)
    assert line.sent == ["first", "second"]
    assert line.cause is None


def test_a_login_that_is_refused_ends_the_connection() -> None:
    async def scenario(line: Line, session: LoginSession, accepted: asyncio.Event) -> None:
        session.renew()
        held = session.hold("first", 1, 1.0)  # type: ignore[arg-type]
        accepted.set()
        while line.cause is None:
            await asyncio.sleep(0)
        assert session.drop() == [held]
        assert not session.is_holding

    error = AuthenticationError("no longer welcome")
    assert play(scenario, error).cause is error


def test_requests_of_a_session_that_is_over_wait_for_the_next() -> None:
    async def scenario(line: Line, session: LoginSession, accepted: asyncio.Event) -> None:
        session.keep(100_000)
        assert (session.lifetime_s, session.has_expired, session.must_wait()) == (100.0, False, False)
        session.ends_at = asyncio.get_running_loop().time()
        assert session.must_wait()
        session.keep(0)
        assert session.ends_at is None
        session.end()
        accepted.set()

    play(scenario)
