"""Forwards writes to the elected registry, and returns its answers."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import socket
import ssl
import threading
import time
import urllib.parse
from collections.abc import Mapping
from typing import NamedTuple, Protocol

from penstock.common.logs import logger_named
from penstock.errors import ConfigError
from penstock.registry.server.state import RefusedError, no_leader

FORWARD_HEADER = "X-Forward"
ELECTION_PATIENCE_S = 5.0
"""Seconds that a write waits for the outcome of an election, or until the elected registry is reachable."""
ELECTION_LOOK_S = 0.02
UNREACHABLE_PAUSE_S = 0.1
CONNECT_TIMEOUT_S = 5.0
READ_TIMEOUT_S = 60.0
"""Seconds that the elected registry may take to answer a write: ``leader.read.timeout.ms`` of Confluent's
registry."""
UNDER_WAY_MAX = 1_000
"""The greatest number of writes that wait for an election or for the elected registry at a time."""
ANSWER_BYTES_MAX = 16 << 20
_log = logger_named("penstock.registry")


class ElectionOutcome(NamedTuple):
    """The registry that writes, according to the last election."""

    url: str | None
    """The URL of the elected registry; None if this registry, or no registry, is elected."""
    is_own: bool
    """True if this registry is the elected one."""


ALONE = ElectionOutcome(None, True)


class Leaders(Protocol):
    """The interface of an object that has the outcome of the last election."""

    @property
    def outcome(self) -> ElectionOutcome:
        """Return the outcome of the last election: the registry that currently writes."""


class Alone:
    """Returns the outcome for a registry without other registries on its topic: this registry writes."""

    outcome = ALONE


class ForwardedAnswer(NamedTuple):
    """The HTTP answer of the elected registry to a forwarded write."""

    status: int
    data: bytes


class UnreachableError(RefusedError):
    """Raised if nothing listens at the elected registry's address, so that it did not receive the request."""

    def __init__(self, url: str, error: OSError) -> None:
        super().__init__(500, 50003, f"The elected registry at {url} cannot be reached: {error}")


class Forwarder:
    """Sends writes to the elected registry. Use it on one event loop."""

    def __init__(self, leaders: Leaders, ca: str | None = None, *, passes_users: bool = False) -> None:
        """Set up forwarding to the registry that `leaders` names.

        Args:
            leaders: has the outcomes of elections.
            ca: a PEM file of certificates that sign the elected registry's; None uses the system's.
            passes_users: whether names and passwords are forwarded with writes.

        Raises:
            ConfigError: the file cannot be read.
        """
        self._leaders = leaders
        self._passes_users = passes_users
        self._under_way = 0
        self._is_stopped = False
        self._open: set[http.client.HTTPConnection] = set()
        self._lock = threading.Lock()
        try:
            self._context = ssl.create_default_context(cafile=ca)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(f"{ca} has no certificates of authorities: {error}") from None

    def stop(self) -> None:
        """Make writes that wait for an election fail, since this registry is being stopped. Thread-safe."""
        self._is_stopped = True

    def abandon(self) -> None:
        """Close the connections to the elected registry, so that no request waits for its answer.

        Thread-safe.
        """
        with self._lock:
            for connection in self._open:
                sock: socket.socket | None = connection.sock  # which http.client takes away at any time
                if sock is not None:
                    with contextlib.suppress(OSError):  # it has ended by itself
                        sock.shutdown(socket.SHUT_RDWR)

    async def leader(self) -> ElectionOutcome:
        """Wait until a registry is elected; return the outcome: this registry, or the URL of another one.

        Raises:
            RefusedError: no registry is elected in time (50004).
        """
        found = self._leaders.outcome
        if found.is_own or found.url is not None:
            return found
        self._begin()
        try:
            deadline = time.monotonic() + ELECTION_PATIENCE_S
            while time.monotonic() < deadline and not self._is_stopped:
                await asyncio.sleep(ELECTION_LOOK_S)
                found = self._leaders.outcome
                if found.is_own or found.url is not None:
                    return found
        finally:
            self._under_way -= 1
        raise no_leader()

    async def forward(
        self, url: str, method: str, target: str, headers: Mapping[str, str], data: bytes
    ) -> ForwardedAnswer:
        """Forward a request to the elected registry at a URL, and return its answer.

        Raises:
            UnreachableError: nothing listens at the URL (50003).
            RefusedError: the registry does not answer (50003), or the request was already forwarded (50004).
        """
        if FORWARD_HEADER.lower() in headers:
            # Two registries that each take the other for the elected one would forward without an end.
            raise no_leader()
        kept = {"Content-Type": headers.get("content-type", "application/json"), FORWARD_HEADER: "true"}
        if self._passes_users and "authorization" in headers:
            kept["Authorization"] = headers["authorization"]
        self._begin()
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(None, self._ask, url, method, target, kept, data)
        except (OSError, http.client.HTTPException, ValueError) as error:
            _log.warning("a write was not forwarded to the elected registry at %s: %s", url, error)
            raise RefusedError(
                500, 50003, f"Error while forwarding the request to the elected registry at {url}: {error}"
            ) from None
        finally:
            self._under_way -= 1

    def _begin(self) -> None:
        if self._under_way >= UNDER_WAY_MAX:
            raise RefusedError(
                500, 50003, f"{UNDER_WAY_MAX} writes wait for the elected registry: try again later"
            )
        self._under_way += 1

    def _ask(
        self, url: str, method: str, target: str, headers: Mapping[str, str], data: bytes
    ) -> ForwardedAnswer:
        parts = urllib.parse.urlsplit(url)
        host, port = parts.hostname or "", parts.port
        connection = (
            http.client.HTTPSConnection(host, port, timeout=CONNECT_TIMEOUT_S, context=self._context)
            if parts.scheme == "https"
            else http.client.HTTPConnection(host, port, timeout=CONNECT_TIMEOUT_S)
        )
        with self._lock:
            self._open.add(connection)
        try:
            try:
                connection.connect()
            except OSError as error:
                raise UnreachableError(url, error) from None
            connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.sock.settimeout(READ_TIMEOUT_S)
            connection.request(method, target, data or None, dict(headers))
            response = connection.getresponse()
            found = response.read(ANSWER_BYTES_MAX + 1)
            if len(found) > ANSWER_BYTES_MAX:
                raise ValueError(f"its answer has more than {ANSWER_BYTES_MAX} bytes")
            return ForwardedAnswer(response.status, found)
        finally:
            with self._lock:
                self._open.remove(connection)
            connection.close()
