"""The open connections of a client: one per broker and purpose, opened when first needed.

The pause between failed attempts to connect grows (``reconnect.backoff.ms``).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from penstock.client.addresses import Address
from penstock.client.background_loop import ignore_outcome, is_background_loop, outcome_of
from penstock.client.cluster.connection import AbandonedError, Connection, connect
from penstock.client.cluster.negotiation import NodeVersions, negotiate
from penstock.client.cluster.other_protocols import explained
from penstock.client.cluster.retry import UNREACHABLE_S, Backoff, Troubles
from penstock.client.config import ClientConfig
from penstock.client.counters import ClientCounters
from penstock.common.logs import logger_named
from penstock.common.reused_buffers import LeftBuffers, ReusedMemory
from penstock.errors import AuthenticationError, LoginPendingError, NetworkError, PenstockError

if TYPE_CHECKING:
    from penstock.client.cluster.secured import SecuredOpener
    from penstock.protocol.message import Message


log = logger_named("penstock.client")

ONE_LOSS_S = 1.0
"""The time in seconds within which the losses of several connections to one broker are logged as one loss."""


SILENCE_S = 0.5
"""The time in seconds without an answer from one address after which the next one is tried in parallel."""

STALLED = "did not say what versions it speaks: it is asked again"
READ_AS_OLD = (
    "%s did not say in a dozen attempts what versions it speaks, and is read as a Kafka before 0.10, which "
    "has no transactions: isolation.level=read_committed has no effect"
)

ONE_THROTTLING_S = 60.0
"""The time in seconds within which only the first throttle by a broker is logged."""


class Peer:
    """An open connection to a broker, with the API versions that the broker and this client support."""

    def __init__(self, connection: Connection, versions: NodeVersions) -> None:
        self.connection = connection
        self.versions = versions

    def request(self, message: Message, timeout_s: float, at_most: int | None = None) -> asyncio.Future[Any]:
        """Send `message` in the highest common version up to `at_most`; return the future of the response.

        Raises as `Connection.request`.
        """
        return self.connection.request(message, self.versions.choose(type(message), at_most), timeout_s)


_LEFT = LeftBuffers()
"""The receive buffers of closed blocking clients, which later blocking clients use again. Programs often make
a new client for each read, which would otherwise wait for new memory pages.
"""


class ConnectionPool:
    """The connections of a client by address and purpose.

    `random` returns numbers from 0 to 1, which vary the pauses between attempts to connect.
    """

    def __init__(self, config: ClientConfig, random: Callable[[], float], troubles: Troubles) -> None:
        self._config = config
        self._dice = random
        self._troubles = troubles
        self._reconnect = Backoff(config.reconnect_backoff_ms, config.reconnect_backoff_max_ms)
        self._memory = ReusedMemory()
        self._secured: SecuredOpener | None = None
        if config.security is not None:
            from penstock.client.cluster.secured import SecuredOpener

            self._secured = SecuredOpener(config.security, config, self._memory)
        self._peers: dict[tuple[Address, str], Peer] = {}
        self._opening: dict[tuple[Address, str], asyncio.Task[Peer]] = {}
        self.counters = ClientCounters()
        self._is_closed = False
        self._insists_on_versions = False

    def connections(self) -> list[Connection]:
        """Return the open connections. Any thread may call this method."""
        return [peer.connection for peer in list(self._peers.values())]

    def feature_level(self, name: str) -> int:
        """Return a cluster feature's finalized level, from the newest data of connected brokers, or 0."""
        newest = max(self._peers.values(), key=lambda peer: peer.versions.features_epoch, default=None)
        return newest.versions.features.get(name, 0) if newest is not None else 0

    def addresses_opening(self) -> list[Address]:
        """Return the addresses to which connections are being opened. Any thread may call this method."""
        return [address for address, _ in list(self._opening)]

    def failures(self, address: Address) -> int:
        """Return how many attempts to connect to an address have failed since the last success."""
        known = self.counters.brokers.get(address)
        return known.failures_in_a_row if known is not None else 0

    def live(self, address: Address, purpose: str) -> Peer | None:
        """Return the open connection to an address for a purpose (such as `FETCH`), or None."""
        peer = self._peers.get((address, purpose))
        if peer is not None and peer.connection.cause is not None:
            del self._peers[address, purpose]
            counters = self.counters.of(address)
            counters.is_connected = any(other == address for other, _ in self._peers)
            if not isinstance(peer.connection.cause, AbandonedError):
                counters.disconnects += 1
                self._say_lost(address, peer.connection.cause)
            return None
        return peer

    async def open(self, address: Address, purpose: str) -> Peer:
        """Return the connection to an address for a purpose; concurrent callers share one attempt to open it.

        Raises:
            NetworkError: the broker cannot be reached, or the pool is closed.
            PenstockError: as `negotiate`.
        """
        peer = self.live(address, purpose)
        if peer is not None:
            return peer
        if self._is_closed:
            raise NetworkError("the client is closed")
        key = (address, purpose)
        task = self._opening.get(key)
        if task is None:
            task = asyncio.create_task(self._open_now(address, purpose))
            self._opening[key] = task
            task.add_done_callback(lambda _: self._opening.pop(key, None))
        return await outcome_of(task)

    async def open_any(
        self, addresses: Sequence[Address], purpose: str
    ) -> tuple[Peer | None, list[PenstockError]]:
        """Return the first connection that opens, or None, with the errors in the order of addresses.

        The next address is tried at once after a failure, and in parallel after `SILENCE_S` seconds without
        an answer.

        Raises:
            AuthenticationError: a broker has refused the login for a reason that applies to all brokers.
        """
        attempts: list[asyncio.Task[Peer]] = []
        failed: dict[asyncio.Task[Peer], PenstockError] = {}
        left = iter(addresses)
        try:
            while True:
                address = next(left, None)
                if address is not None:
                    attempts.append(asyncio.create_task(self.open(address, purpose)))
                running = [each for each in attempts if each not in failed]
                if not running:
                    return None, [failed[each] for each in attempts]
                patience_s = None if address is None else SILENCE_S
                await asyncio.wait(running, timeout=patience_s, return_when=asyncio.FIRST_COMPLETED)
                for each in running:
                    if not each.done():
                        continue
                    try:
                        return each.result(), []
                    except AuthenticationError as error:
                        if not error.is_of_one_broker:
                            raise
                        failed[each] = error
                    except PenstockError as error:
                        # This broker is at fault in any case; another one may answer as it should.
                        failed[each] = error
        finally:
            for each in attempts:  # what they have begun to open goes on, and ends by itself
                each.add_done_callback(ignore_outcome)
                each.cancel()

    async def _open_now(self, address: Address, purpose: str) -> Peer:
        loop = asyncio.get_running_loop()
        not_before = self.counters.of(address).not_before
        if not_before > loop.time():
            await asyncio.sleep(not_before - loop.time())
        try:
            peer = await self.greet(address)
        except PenstockError as error:
            counters = self.counters.of(address)
            counters.failures += 1
            self._troubles.note(address, error, UNREACHABLE_S)
            self._say_unreachable(address, error)
            pause_s = self._reconnect.seconds(counters.failures_in_a_row, self._dice)
            counters.failures_in_a_row += 1
            counters.not_before = loop.time() + pause_s
            raise
        counters = self.counters.of(address)
        counters.failures_in_a_row = 0
        counters.not_before = float("-inf")
        self._troubles.end(address)
        self._say_connected(address)
        counters.connects += 1
        counters.is_connected = True
        self._peers[address, purpose] = peer
        return peer

    # -- what the log says at INFO: each change of an address once

    def _say_connected(self, address: Address) -> None:
        known, now = self.counters.of(address), time.monotonic()
        if known.said_connected:
            return
        if known.said_connected is None:
            log.info("%s: connected to %s", self._config.client_id, address)
        else:
            without_s = now - known.said_at
            log.info("%s: connected to %s, after %.1f s without", self._config.client_id, address, without_s)
        known.said_connected, known.said_at = True, now

    def _say_lost(self, address: Address, cause: BaseException) -> None:
        known, now = self.counters.of(address), time.monotonic()
        if known.said_connected and now - known.said_at > ONE_LOSS_S:
            known.said_connected, known.said_at = False, now
            log.info("%s: lost %s, connecting again: %s", self._config.client_id, address, cause)

    def _say_unreachable(self, address: Address, error: PenstockError) -> None:
        known = self.counters.of(address)
        if known.said_connected is not False:
            known.said_connected, known.said_at = False, time.monotonic()
            log.info("%s: cannot reach %s: %s", self._config.client_id, address, error)

    def note_throttled(self, address: Address, pause_ms: int) -> None:
        """Count a throttle of `pause_ms` by a broker's quota. Log only the first one in a minute."""
        now, counters = time.monotonic(), self.counters.of(address)
        if now - counters.throttled_at > ONE_THROTTLING_S:
            log.info(
                "%s: throttled by %s, which asks for a pause of %g s",
                self._config.client_id,
                address,
                pause_ms / 1000,
            )
        counters.throttled_at = now
        counters.throttle.add(pause_ms / 1000)

    async def connect(self, address: Address) -> Connection:
        """Return a new connection outside the pool, which the caller closes.

        Raises:
            NetworkError: the connection cannot be opened.
        """
        if is_background_loop(asyncio.get_running_loop()):
            self._memory.take_over(_LEFT)
        if self._secured is not None:
            connection: Connection = await self._secured.connect(address)
        else:
            connection = await connect(address, self._config, self._memory)
        connection.counters = self.counters.of(address)
        return connection

    @property
    def secured(self) -> SecuredOpener | None:
        """The object that opens connections with TLS or SASL; None if the client uses neither."""
        return self._secured

    async def greet(self, address: Address) -> Peer:
        """Return a new connection outside the pool, with negotiated versions and logged in.

        The caller closes the connection. If a login is refused while its secrets are being replaced, the
        method tries again. Once any broker of the cluster has answered ApiVersions, no broker of it counts as
        older than 0.10.

        Raises:
            NetworkError: the broker cannot be reached.
            PenstockError: as `negotiate`.
        """
        while True:
            try:
                return await self._greet_once(address)
            except LoginPendingError as error:
                assert self._secured is not None
                self._troubles.note(address, error, UNREACHABLE_S)
                self._say_unreachable(address, error)
                await self._secured.until_another_try()

    async def _greet_once(self, address: Address) -> Peer:
        known = self.counters.of(address)
        is_ancient = known.is_ancient if self._config.api_version_request else True
        if self._config.api_version_request and self._has_met_newer():
            is_ancient = False  # one that keeps silent beside newer brokers has stalled
        try:
            connection, versions = await negotiate(
                lambda: self.connect(address),
                self._config.api_version_request_timeout_ms / 1000,
                is_ancient=is_ancient if self._secured is None else False,
                unstable=self._config.unstable_api_versions_enable,
                probes=self._secured is None or not self._secured.settings.uses_sasl,
            )
            if self._secured is not None:
                await self._secured.authenticate(connection, versions)
        except NetworkError as error:
            if isinstance(error, LoginPendingError) or known.is_ancient is not None:
                raise
            raise await explained(error, address, self._config.security) from error
        if versions.is_ancient and self._has_met_newer():  # since this attempt began
            connection.close()
            raise NetworkError(f"{address} {STALLED}")
        if not versions.is_ancient and not self._has_met_newer():
            self._end_ancient()
        if versions.is_ancient and self._insists_on_versions and known.is_ancient is None:
            log.warning(READ_AS_OLD, address)
        known.is_ancient = versions.is_ancient
        return Peer(connection, versions)

    def insist_on_versions(self) -> None:
        """Ask brokers that seemed to be older than 0.10 for their versions once more.

        A reader of committed records needs this: an overloaded broker may leave ApiVersions unanswered, and
        version 0 of Fetch would return the records of aborted transactions. A broker that still does not
        answer counts as older than 0.10, with a warning. With ``api.version.request=false`` no broker is
        asked.
        """
        if self._config.api_version_request and not self._insists_on_versions:
            self._insists_on_versions = True
            for known in self.counters.brokers.values():
                if known.is_ancient:
                    known.is_ancient = None
            self._end_ancient()

    def _has_met_newer(self) -> bool:
        """Return True if any broker of the cluster has ever answered ApiVersions."""
        return any(each.is_ancient is False for each in self.counters.brokers.values())

    def _end_ancient(self) -> None:
        """Close connections that use version 0 of every API, so that their brokers are asked again."""
        for (address, _), peer in list(self._peers.items()):
            if peer.versions.is_ancient:
                peer.connection.close(NetworkError(f"{address} {STALLED}"))

    def end_opening(self) -> list[asyncio.Task[Peer]]:
        """Refuse to open more connections; return the attempts under way, for the caller to cancel."""
        self._is_closed = True
        return list(self._opening.values())

    def close(self) -> None:
        """Close every connection. Requests in flight raise NetworkError."""
        self._is_closed = True
        for peer in self._peers.values():
            peer.connection.close(NetworkError("the client was closed"))
        self._peers.clear()
        loop = asyncio.get_running_loop()
        if is_background_loop(loop):  # the other loops may end before the time is over
            self._memory.leave(_LEFT, loop.call_later)
