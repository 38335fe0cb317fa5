"""The SASL session of a connection: the client authenticates again before the session ends (KIP-368).

Requests made during a re-authentication are held back and then sent in order.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from penstock.errors import PenstockError

if TYPE_CHECKING:
    from penstock.protocol.message import Message

SESSION_PARTS = (0.85, 0.95)
"""The fractions of a session's lifetime between which the client authenticates again. It chooses the time at
random, as Java does, so that clients do not all authenticate at once."""

REAUTHENTICATION_S_MIN = 1.05
"""The minimum time in seconds between two authentications, since brokers refuse a second one within one
second."""


class Requests(Protocol):
    """The interface of a connection that its SASL session uses. Requests sent `at_once` are not held back."""

    def request(
        self, message: Message, version: int, timeout_s: float, *, at_once: bool = False
    ) -> asyncio.Future[Any]:
        """Send a request, and return the future of its response."""

    def send_only(self, message: Message, version: int, *, at_once: bool = False) -> None:
        """Send a request that has no response."""

    def close(self, cause: PenstockError | None = None) -> None:
        """Close the connection."""


class HeldRequest(NamedTuple):
    """A request that is held back during a re-authentication. `future` is None if it has no response."""

    message: Message
    version: int
    timeout_s: float
    future: asyncio.Future[Any] | None


class LoginSession:
    """The SASL session of one connection, and the requests held back while it authenticates again."""

    def __init__(self, connection: Requests, log_in: Callable[[], Awaitable[None]]) -> None:
        """Create a session without an end.

        `log_in` authenticates the connection again, and must call `keep`.
        """
        self.lifetime_s = 0.0
        """The length of the session that the broker has granted, in seconds; 0 for no end."""
        self.ends_at: float | None = None
        """The time at which the session ends, in seconds of the loop's clock, or None if it does not end."""
        self._connection = connection
        self._log_in = log_in
        self._loop = asyncio.get_running_loop()
        self._held: list[HeldRequest] | None = None
        """The requests that are held back; None while no re-authentication is under way."""
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    def keep(self, lifetime_ms: int) -> None:
        """Record a session's lifetime (0: no end), and schedule the next authentication before its end."""
        self.end()
        self.ends_at = None
        if lifetime_ms > 0:
            self.lifetime_s = lifetime_s = lifetime_ms / 1000
            self.ends_at = self._loop.time() + lifetime_s
            after_s = max(
                lifetime_s * random.uniform(*SESSION_PARTS), min(REAUTHENTICATION_S_MIN, lifetime_s)
            )
            self._timer = self._loop.call_later(after_s, self.renew)

    @property
    def has_expired(self) -> bool:
        return self.ends_at is not None and self._loop.time() >= self.ends_at

    @property
    def is_holding(self) -> bool:
        """True if a request is held back."""
        return bool(self._held)

    def must_wait(self) -> bool:
        """Return True if requests are to be held back; begin to authenticate if the session has expired."""
        if self._held is None and self.has_expired:
            self.renew()
        return self._held is not None

    def hold(self, message: Message, version: int, timeout_s: float) -> asyncio.Future[Any]:
        """Hold a request back until the re-authentication ends; return the future of its response."""
        future: asyncio.Future[Any] = self._loop.create_future()
        self._hold(HeldRequest(message, version, timeout_s, future))
        return future

    def hold_unanswered(self, message: Message, version: int) -> None:
        """Hold back a request that has no response, until the re-authentication ends."""
        self._hold(HeldRequest(message, version, 0.0, None))

    def _hold(self, held: HeldRequest) -> None:
        assert self._held is not None  # `must_wait` has just returned so
        self._held.append(held)

    def renew(self) -> None:
        """Begin to authenticate again, unless that is under way. Requests are held back from now on."""
        if self._held is None:
            self._held = []
            self._task = self._loop.create_task(self._renew())

    async def _renew(self) -> None:
        try:
            await self._log_in()
        except PenstockError as error:
            self._connection.close(error)
            return
        held, self._held = self._held or [], None
        for message, version, timeout_s, future in held:
            if future is not None and future.done():
                continue  # given up by its caller
            try:
                if future is None:
                    self._connection.send_only(message, version, at_once=True)
                else:
                    _hand_over(self._connection.request(message, version, timeout_s, at_once=True), future)
            except PenstockError as error:
                if future is not None and not future.done():
                    future.set_exception(error)

    def end(self) -> None:
        """Cancel the scheduled re-authentication."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def drop(self) -> list[asyncio.Future[Any]]:
        """End the session, and return the futures of the requests held back, for the caller to fail."""
        self.end()
        held, self._held = self._held or [], None
        return [each.future for each in held if each.future is not None]


def _hand_over(source: asyncio.Future[Any], target: asyncio.Future[Any]) -> None:
    """Copy the outcome of one future to another, once it is done."""

    def done(_: asyncio.Future[Any]) -> None:
        error = None if source.cancelled() else source.exception()
        if target.done():
            return
        if source.cancelled():
            target.cancel()
        elif error is not None:
            target.set_exception(error)
        else:
            target.set_result(source.result())

    source.add_done_callback(done)
