"""The frames of a login at the gateway: passes frames from a client's `Relay` to its `Login`."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from penstock.errors import DecodeError
from penstock.gateway.accounts.login import (
    FAILURE_DELAY_S,
    NEEDS_BROKER,
    OFFERED,
    login_refusal,
)
from penstock.gateway.limits import TOKEN_BYTES_MAX
from penstock.gateway.routes import versions_response
from penstock.protocol.api_keys import ApiKey
from penstock.security.sasl_server import PASS

if TYPE_CHECKING:
    from penstock.gateway.accounts.login import Login
    from penstock.gateway.counters import CountedClient
    from penstock.gateway.routes import BrokerRoutes
    from penstock.security.sasl_server import FrameVerdict


class Relaying(Protocol):
    """The methods of a client's `Relay` (the link between client and broker) that a login calls."""

    is_closed: bool

    def attach(self) -> None:
        """Connect to a broker; read no more requests until that succeeds, or no broker can be reached."""

    def collect(self, size: int, most: int) -> None:
        """Buffer a frame of `size` bytes, and process it once complete.

        Raises DecodeError if `size` exceeds `most`.
        """

    def hold_back(self) -> None:
        """Read no more requests from the client."""

    def respond(self, chunks: list[Any]) -> None:
        """Send a response to the client, after the responses to its earlier requests."""

    def close(self, reason: str, level: int) -> None:
        """Close the client's connection."""


class LoginTurns:
    """Passes the frames of one client's login from its `Relay` to its `Login`, one after another.

    Args:
        relay: the relay of the client.
        counted: the client's counts of requests.
        new_login: is called with a function that answers ApiVersions, and returns the login; returns None if
            the gateway has no users.
        later: calls a function after a number of seconds.
        last_routes: returns the routes to the broker that was connected last, or None.
    """

    def __init__(
        self,
        relay: Relaying,
        counted: CountedClient,
        new_login: Callable[[Callable[[memoryview], bytes]], Login | None],
        later: Callable[[float, Callable[[], None]], None],
        last_routes: Callable[[], BrokerRoutes | None],
    ) -> None:
        self.login = new_login(self._versions)
        self._relay = relay
        self._counted = counted
        self._later = later
        self._last_routes = last_routes

    def begin(self, data: memoryview, position: int, end: int, *, needs_routes: bool) -> int | None:
        """Begin to collect the frame at `position`, and return 0, if the frame is part of the login.

        Returns -1 if the frame has to wait, and None for an ordinary request, also after the login.

        Raises:
            DecodeError: the size is too large for a token, or the session has expired.
        """
        login = self.login
        if login is None or not login.is_engaged:
            return None
        turn = login.turn(data, position, end, needs_routes=needs_routes)
        if turn is None:
            return None
        if turn == NEEDS_BROKER:
            self._relay.attach()
        elif turn >= 0:
            self._relay.collect(turn, TOKEN_BYTES_MAX)
            return 0
        return -1

    def takes(self, key: int) -> bool:
        """Return True if the gateway itself answers requests of this API, instead of forwarding them."""
        return self.login is not None and self.login.takes(key)

    def take(self, frame: bytearray) -> None:
        """Process a whole frame of the login, including its size field, and respond."""
        assert self.login is not None
        code = int.from_bytes(frame[4:8], "big")
        if code >> 16 in OFFERED and code & 0xFFFF <= OFFERED[code >> 16][1]:
            self._counted.asked(code, memoryview(frame), 0)
        verdict = self.login.receive(memoryview(frame)[4:])
        if verdict is PASS:
            self._relay.respond(login_refusal(code, int.from_bytes(frame[8:12], "big", signed=True)))
        elif verdict.delays:
            self._relay.hold_back()
            self._later(FAILURE_DELAY_S, lambda: self._end(verdict))
        else:
            self._end(verdict)

    def greeted(self, routes: BrokerRoutes) -> None:
        """Set the APIs and versions of a broker, which ApiVersions lists before the client has logged in."""
        if self.login is not None:
            self.login.routes = routes

    def _end(self, verdict: FrameVerdict) -> None:
        if self._relay.is_closed:
            return
        if verdict.reply:
            self._relay.respond([verdict.reply])
        if verdict.closes:
            self._relay.close(verdict.reason, logging.WARNING)

    def _versions(self, frame: memoryview) -> bytes:
        """Return the response to an ApiVersions request that comes before or during the login."""
        login = self.login
        routes = self._last_routes() if login is None or login.routes is None else login.routes
        version = int.from_bytes(frame[2:4], "big", signed=True)
        if routes is None:
            raise DecodeError("the gateway reaches no broker for ApiVersions")
        self._counted.introduce(frame, version)
        self._counted.asked(
            ApiKey.API_VERSIONS << 16 | version & 0xFFFF, memoryview(bytes(4) + bytes(frame)), 0
        )
        correlation_id = int.from_bytes(frame[4:8], "big", signed=True)
        return b"".join(versions_response(routes, version, correlation_id, OFFERED))
