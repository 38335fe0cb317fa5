"""The gateway's server on the running event loop: its ports, its clients, and their common limits."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from penstock.clock import SystemClock
from penstock.common.failures import Failures, LimitedLog
from penstock.common.listening.accepting import Acceptor, listening_sockets
from penstock.common.listening.exposure import warn_if_exposed
from penstock.common.logs import logger_named
from penstock.errors import NetworkError, PenstockError
from penstock.gateway.accounts.login import Login
from penstock.gateway.brokers import Brokers
from penstock.gateway.counters import Counters
from penstock.gateway.nodes import Nodes
from penstock.gateway.seen.metrics_page import page
from penstock.gateway.seen.taps import Taps
from penstock.gateway.sockets import ClientSocket, new_buffer
from penstock.security.tls import TlsConnection

if TYPE_CHECKING:
    import ssl

    from penstock.broker.network.metrics_server import MetricsServer
    from penstock.client.config import ClientConfig
    from penstock.gateway.accounts.book import AccountBook
    from penstock.gateway.addresses import ServerNames
    from penstock.gateway.calls import NodeCall
    from penstock.gateway.contracts import Attachable, Ended, Tap
    from penstock.gateway.counters import ClientCount
    from penstock.gateway.hooks.chain import Hooks
    from penstock.gateway.limits import Limits
    from penstock.gateway.routes import BrokerRoutes
    from penstock.gateway.seen.taps import Seen
    from penstock.gateway.versions import Translation

CIPHERTEXT_BYTES = 64 << 10

BACKLOG = 512
"""The most connections per port that wait to be accepted (the argument of ``listen``)."""

START_PATIENCE_S = 2.0
"""The longest time in seconds that the start waits for the cluster's first Metadata response."""

SWEEP_EVERY_S = 5.0
"""The longest time in seconds between searches for idle connections."""

ACCOUNTS_EVERY_S = 1.0
"""The seconds between two checks of the file of accounts for changes."""

logger = logger_named("penstock.gateway")


class GatewayServer:
    """Serves a cluster at the gateway's ports; implements the interfaces that sockets and relays call."""

    def __init__(
        self,
        config: ClientConfig,
        translation: Translation,
        limits: Limits,
        host: str,
        ports: Sequence[int],
        advertised_host: str | None,
        hooks: Hooks,
        seen: Seen,
        book: AccountBook | None = None,
        tls: ssl.SSLContext | None = None,
        names: ServerNames | None = None,
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.scratch = new_buffer()
        self.ciphertext = new_buffer(CIPHERTEXT_BYTES)
        self.limits = limits
        self.translation = translation
        self.hooks = hooks
        self.counters = Counters()
        self.metrics_port: int | None = None
        self.more_counts: Callable[[], list[ClientCount]] = list
        """A function that returns the counts of clients of other listeners, such as the one for Kafka 0.7."""
        self.failures = Failures(self.loop.time, logger)
        self._seen = seen
        self._taps = Taps(seen, self.caught)
        self._metrics: MetricsServer | None = None
        self.nodes = Nodes(ports, self._listen, self._stop_listening)
        self.port = 0
        self.held_bytes = 0
        """Total size in bytes of frames that are being decoded, and of unsent data."""
        self.clients: set[ClientSocket] = set()
        self.connections = 0
        """The number of accepted connections, including those whose client is not in `clients` yet."""
        self._brokers = Brokers(config, self.nodes, translation, self)
        self._book = book
        self._tls = tls
        self._names = names
        self._has_account = book is not None or (config.security is not None and config.security.uses_sasl)
        self._host = host
        self._advertised_host = advertised_host
        self._acceptors: dict[int | None, Acceptor] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._log = LimitedLog(self.loop.time, logger)

    async def start(self, port: int) -> None:
        """Listen, and begin to connect to the cluster, which need not be reachable yet.

        Raises:
            NetworkError: the gateway cannot listen on the address.
        """
        try:
            self.port = self._listen(None, port)
        except OSError as error:
            raise NetworkError(
                f"cannot listen on {self._host}:{port}: {error.strerror or error}; take another port"
            ) from error
        if self._seen.metrics_port is not None:
            await self._serve_metrics(self._seen.metrics_port)
        has_begun = asyncio.Event()
        self._begin(self._brokers.follow(has_begun))
        self._begin(self._sweep())
        if self._book is not None:
            self._begin(self._follow_accounts(self._book))
        try:
            async with asyncio.timeout(START_PATIENCE_S):
                await has_begun.wait()
        except TimeoutError:
            logger.warning("the cluster does not answer; it is looked for")

    async def _serve_metrics(self, port: int) -> None:
        from penstock.broker.network.metrics_server import MetricsServer, Page

        metrics = MetricsServer({"/metrics": Page(self._metrics_text)}, self.failures)
        try:
            await metrics.start(self._host, port)
        except OSError as error:
            raise NetworkError(
                f"cannot serve metrics at {self._host}:{port}: {error.strerror or error}; take another port"
            ) from error
        self._metrics, self.metrics_port = metrics, metrics.port

    def _metrics_text(self) -> str:
        return page(self.client_counts(), len(self.clients), self.held_bytes)

    def client_counts(self) -> list[ClientCount]:
        """Return the counts of client requests since the start, by kind of client, API and version."""
        routes = self.last_routes
        return self.counters.rows({} if routes is None else routes.upstream) + self.more_counts()

    async def stop(self) -> None:
        """Close all ports and connections."""
        if self._metrics is not None:
            await self._metrics.stop()
        for acceptor in self._acceptors.values():
            await acceptor.stop()
        for client in list(self.clients):
            if client.relay is not None:
                client.relay.client_lost()
            client.abort()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._brokers.close()
        await asyncio.sleep(0)
        self._taps.close()

    def _begin(self, work: object) -> None:
        task: asyncio.Task[None] = self.loop.create_task(work)  # type: ignore[arg-type]
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _sweep(self) -> None:
        """Close connections that are idle for too long, or whose login takes too long."""
        while True:
            await asyncio.sleep(min(SWEEP_EVERY_S, self.limits.idle_ms / 1000, self.limits.login_ms / 1000))
            now = self.loop.time()
            for client in list(self.clients):
                idle_s = now - client.active_at
                if idle_s * 1000 > self.limits.idle_ms and client.relay is not None and client.relay.is_stuck:
                    client.relay.close(f"nothing has come for {idle_s:.0f} s")
                    client.abort()

            self._expire_logins(now)

    def _expire_logins(self, now: float) -> None:
        for client in list(self.clients):
            relay, waits_s = client.relay, now - client.connected_at
            login = None if relay is None else relay.login
            is_late = client.is_shaking_hands or (login is not None and login.account is None)
            if relay is not None and is_late and waits_s * 1000 > self.limits.login_ms:
                relay.close(f"it has not logged in for {waits_s:.0f} s")
                client.abort()

    async def _follow_accounts(self, book: AccountBook) -> None:
        """Read the accounts again when their file has changed; close connections of removed accounts."""
        while True:
            await asyncio.sleep(ACCOUNTS_EVERY_S)
            if not book.has_changed():
                continue
            try:
                live = (await asyncio.to_thread(book.read)).live
            except PenstockError as error:
                logger.error("the accounts stay as they were: %s", error)
                continue
            logger.info("the accounts have been read again")
            for client in list(self.clients):
                relay = client.relay
                login = None if relay is None else relay.login
                if relay is not None and login is not None and login.account not in (None, *live):
                    relay.close("its entry in the accounts has changed, or is gone")
            await self._brokers.keep_only(live)

    # --- ports ------------------------------------------------------------------------------------------

    def _listen(self, node_id: int | None, port: int) -> int:
        """Open the port of a broker (the bootstrap port for None); return the port number. Raises OSError.

        If brokers are distinguished by TLS server names (SNI), all of them share the bootstrap port.
        """
        if node_id is not None and self._names is not None:
            return self.port
        sockets = listening_sockets(self._host, port)
        if not port:
            for other in sockets[1:]:  # it would get another number
                other.close()
            del sockets[1:]
        acceptor = Acceptor(
            self.loop,
            lambda: ClientSocket(self, self, node_id, self._advertised_host, self._new_tls(), self._names),
            self.failures,
            ConnectionGate(self),
        )
        try:
            for one in sockets:
                acceptor.start(one, BACKLOG)
        except OSError:
            for one in sockets:
                one.close()
            raise
        if node_id is None and (self._book is None or self._book.accounts.default is not None):
            warn_if_exposed(sockets[0], "use the cluster with what the gateway may do there", logger)
        self._acceptors[node_id] = acceptor
        number: int = sockets[0].getsockname()[1]
        return number

    def _new_tls(self) -> TlsConnection | None:
        return None if self._tls is None else TlsConnection(self._tls, is_server=True)

    def _stop_listening(self, node_id: int) -> None:
        acceptor = self._acceptors.pop(node_id, None)
        if acceptor is not None:
            self._begin(acceptor.stop())

    # --- clients ----------------------------------------------------------------------------------------

    def tap_of(self, peer: str, local: str) -> Tap | None:
        return self._taps.of(peer, local)

    def enter(self, client: ClientSocket) -> None:
        self.clients.add(client)

    def leave(self, client: ClientSocket) -> None:
        self.clients.discard(client)
        self.connections -= 1
        for acceptor in self._acceptors.values():
            acceptor.look_for_room()

    @property
    def is_short(self) -> bool:
        return self.held_bytes * 2 > self.limits.held_bytes_max

    def hold(self, size: int) -> bool:
        self.held_bytes += size
        return self.held_bytes <= self.limits.held_bytes_max

    def let_go(self, size: int) -> None:
        self.held_bytes -= size

    def note_end(self, level: int, client: str, reason: str) -> None:
        self._log.write(level, "closed connections", "client %s: %s", client, reason)

    def caught(self, what: str) -> None:
        self.failures.caught("gateway", what)

    # --- what relays ask for ----------------------------------------------------------------------------

    @property
    def has_account(self) -> bool:
        return self._has_account

    @property
    def last_routes(self) -> BrokerRoutes | None:
        return self._brokers.last_routes

    def new_login(self, answer_versions: Callable[[memoryview], bytes]) -> Login | None:
        if self._book is None:
            return None
        return Login(self._book, answer_versions, self.loop.time, SystemClock().now_ms)

    def later(self, seconds: float, work: Callable[[], None]) -> None:
        self.loop.call_later(seconds, work)

    def routes_of(self, ranges: Mapping[int, tuple[int, int]]) -> BrokerRoutes:
        return self._brokers.routes_of(ranges)

    def is_back(self, node_id: int) -> bool:
        return self._brokers.is_back(node_id)

    def attach(self, relay: Attachable) -> None:
        self._begin(self._attach(relay))

    async def _attach(self, relay: Attachable) -> None:
        is_before_login = relay.login is not None and relay.login.account is None
        try:
            if is_before_login:
                relay.greeted(await self._brokers.versions(relay.home))
                return
            upstream = await self._brokers.open(relay)
        except PenstockError as error:
            relay.unreachable(error)
        except Exception:
            self.caught(f"connecting {relay.peer} to a broker")
            relay.close("an error of the gateway", logging.ERROR)
        else:
            relay.attached(upstream)

    def in_thread(self, relay: Attachable, work: Callable[[], NodeCall | Ended | Exception]) -> None:
        self._begin(self._in_thread(relay, work))

    async def _in_thread(self, relay: Attachable, work: Callable[[], NodeCall | Ended | Exception]) -> None:
        relay.worked(await asyncio.to_thread(work))

    def call_node(self, relay: Attachable, call: NodeCall) -> None:
        self._begin(self._call_node(relay, call))

    async def _call_node(self, relay: Attachable, call: NodeCall) -> None:
        try:
            answer = await self._brokers.ask(call, None if relay.login is None else relay.login.account)
        except PenstockError as error:
            relay.close(f"broker {call.node_id} does not answer: {error}", logging.WARNING)
        except Exception:
            self.caught(f"asking broker {call.node_id} for {relay.peer}")
            relay.close("an error of the gateway", logging.ERROR)
        else:
            relay.answer_call(answer)


class ConnectionGate:
    """Accepts connections while there are fewer than `connections_max`; others wait in the listen queue."""

    def __init__(self, server: GatewayServer) -> None:
        self._server = server

    def wait_s(self) -> float:
        return 0.0

    def has_room(self) -> bool:
        return self._server.connections < self._server.limits.connections_max

    def refuse_s(self, address: str) -> float:
        return 0.0

    def enter(self) -> None:
        self._server.connections += 1

    def leave(self) -> None:
        self._server.connections -= 1


@asynccontextmanager
async def serving(
    config: ClientConfig,
    translation: Translation,
    limits: Limits,
    host: str,
    port: int,
    ports: Sequence[int],
    advertised_host: str | None,
    hooks: Hooks,
    seen: Seen,
    book: AccountBook | None = None,
    tls: ssl.SSLContext | None = None,
    names: ServerNames | None = None,
) -> AsyncIterator[GatewayServer]:
    """Run a gateway on the running event loop for the duration of a ``with`` block."""
    server = GatewayServer(
        config, translation, limits, host, ports, advertised_host, hooks, seen, book, tls, names
    )
    try:
        await server.start(port)
        yield server
    finally:
        await server.stop()
