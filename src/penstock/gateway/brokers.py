"""The brokers behind a gateway: their connections, and their current addresses.

A client is connected to the broker of its port. If that broker cannot be reached, the client is connected to
another broker, whose errors (such as NOT_LEADER_OR_FOLLOWER) make clients look up leaders and coordinators
again. Meanwhile the gateway tries to reach the first broker in the background.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Container, Generator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakValueDictionary

from penstock.client.addresses import Address
from penstock.client.cluster.client import AsyncClient
from penstock.client.cluster.connection import open_socket
from penstock.client.cluster.connection_pool import Peer
from penstock.client.cluster.login_session import SESSION_PARTS
from penstock.common.logs import logger_named
from penstock.errors import AuthenticationError, NetworkError, PenstockError
from penstock.gateway.calls import NodeCall
from penstock.gateway.nodes import NodeAddress, Nodes
from penstock.gateway.routes import BrokerRoutes
from penstock.gateway.sockets import UpstreamSocket
from penstock.protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from penstock.client.cluster.negotiation import NodeVersions
    from penstock.client.config import ClientConfig
    from penstock.client.security.authenticator import Authenticator
    from penstock.gateway.accounts.book import Account
    from penstock.gateway.contracts import Attachable
    from penstock.gateway.sockets import SocketHost
    from penstock.gateway.versions import Translation

FOLLOW_EVERY_S = 10.0
"""The seconds between refreshes of the cluster's brokers. The gateway also learns brokers from the responses
to clients."""

FOLLOW_AGAIN_S = 0.5
"""Seconds until the next refresh after a failure, and between attempts to reach an unreachable broker."""

HOME_PATIENCE_S = 5.0
"""Timeout in seconds for connecting to the broker of a client's port. It applies only if other brokers can
be tried afterwards.
"""

STAND_INS_MAX = 3
"""The maximum number of other brokers to which the gateway tries to connect instead of an unreachable one."""

FAILED_AGAIN_S = 0.1
"""The minimum seconds between attempts to connect while no broker can be reached."""

VERSIONS_KEPT_S = 60.0
"""Seconds for which a broker's API versions are cached. The cached versions are dropped earlier if the
broker closes a connection.
"""

ROUTES_MAX = 100
"""The most `BrokerRoutes` (tables of how to handle requests) that are cached. Each Kafka release among the
brokers needs one.
"""

SIDE = "gateway"
"""The `purpose` argument of `AsyncClient.peer` for connections over which the gateway sends its own
requests to further brokers. All its clients share these connections.
"""

T = TypeVar("T")

log = logger_named("penstock.gateway")


class Brokers:
    """Opens connections to brokers for the gateway's clients, and follows changes of the cluster's brokers.

    `sockets` has the read buffer that all sockets share, and limits the buffered bytes.
    """

    def __init__(
        self, config: ClientConfig, nodes: Nodes, translation: Translation, sockets: SocketHost
    ) -> None:
        self.client = AsyncClient(config)
        self.last_routes: BrokerRoutes | None = None
        self._config = config
        self._has_account = config.security is not None and config.security.uses_sasl
        self._nodes = nodes
        self._translation = translation
        self._sockets = sockets
        self._routes: dict[tuple[tuple[int, tuple[int, int]], ...], BrokerRoutes] = {}
        self._versions: dict[Address, tuple[NodeVersions, float]] = {}
        """A dict from a broker's address to (API versions, time of the request): a cache for a gateway whose
        clients log in at brokers."""
        self._asking: WeakValueDictionary[Address, asyncio.Lock] = WeakValueDictionary()
        self._clients: dict[Account, AsyncClient] = {}
        """A dict from an account to the `AsyncClient` that logs in with its credentials."""
        self._refused: dict[Account, tuple[AuthenticationError, float]] = {}
        """A dict from an account whose login the cluster has refused to (error, time of the next attempt)."""
        self._failed_at = float("-inf")
        self._looking: dict[int, asyncio.Task[None]] = {}

    async def close(self) -> None:
        for task in self._looking.values():
            task.cancel()
        for client in [self.client, *self._clients.values()]:
            await client.close(0)

    # --- where brokers are ------------------------------------------------------------------------------

    async def follow(self, has_begun: asyncio.Event) -> None:
        """Refresh the cluster's metadata at intervals until cancelled.

        The first refresh sets `has_begun`.
        """
        said = ""
        while True:
            pause_s = FOLLOW_EVERY_S
            try:
                await self.client.refresh()
                for node in self.client.cluster.nodes.values():
                    self._nodes.learn(NodeAddress(node.node_id, node.host, node.port))
                said = ""
            except PenstockError as error:
                if isinstance(error, AuthenticationError) and not self._has_account:
                    log.info("brokers become known as clients meet them, since the gateway has no login")
                    has_begun.set()
                    return
                # Wrong logins in a row lock accounts out in some directories of users.
                pause_s = FOLLOW_EVERY_S if isinstance(error, AuthenticationError) else FOLLOW_AGAIN_S
                if str(error) != said:
                    said = str(error)
                    log.warning("the cluster does not answer: %s", said)
            has_begun.set()
            await asyncio.sleep(pause_s)

    def note_away(self, node_id: int | None) -> None:
        """Mark a broker as unreachable, and try to connect to it in the background until that succeeds."""
        node = None if node_id is None else self._nodes.by_id.get(node_id)
        if node is None or node.is_away:
            return
        node.is_away = True
        log.warning("broker %d at %s is away", node.node_id, node.address)
        task = asyncio.get_running_loop().create_task(self._look_for(node.node_id))
        self._looking[node.node_id] = task
        task.add_done_callback(lambda _: self._looking.pop(node.node_id, None))

    async def _look_for(self, node_id: int) -> None:
        while (node := self._nodes.by_id.get(node_id)) is not None and node.is_away:
            await asyncio.sleep(FOLLOW_AGAIN_S)
            try:
                (await open_socket(node.address, self._config)).close()
            except NetworkError:
                continue
            node.is_away = False
            log.info("broker %d at %s is back", node_id, node.address)

    def is_back(self, node_id: int) -> bool:
        node = self._nodes.by_id.get(node_id)
        return node is not None and not node.is_away

    # --- connections ------------------------------------------------------------------------------------

    async def open(self, relay: Attachable) -> UpstreamSocket:
        """Connect a client to the broker of its port, or to another broker if that broker is unreachable.

        Raises:
            PenstockError: no broker can be reached.
        """
        account = None if relay.login is None else relay.login.account

        async def connect(address: Address) -> tuple[AsyncClient, Peer]:
            if account is None:
                return self.client, await self._connect(address)
            client = self._client_of(account)
            return client, await self._log_in(account, client, address)

        node_id, (client, peer) = await self._first(relay.home, connect)
        return self._handed_over(relay, node_id, client, peer)

    async def versions(self, home: int | None) -> BrokerRoutes:
        """Request a broker's API versions without a login, for a client that has not logged in yet.

        Raises:
            PenstockError: no broker can be reached.
        """
        _, versions = await self._first(home, self._greeted)
        return self.routes_of(versions.ranges)

    async def _first(
        self, home: int | None, attempt: Callable[[Address], Awaitable[T]]
    ) -> tuple[int | None, T]:
        """Try brokers one after another with `attempt`; return (broker id, result) of the first success.

        Raises PenstockError.
        """
        loop = asyncio.get_running_loop()
        early_s = self._failed_at + FAILED_AGAIN_S - loop.time()
        if early_s > 0:
            await asyncio.sleep(early_s)
        targets = self._targets(home)
        failure: PenstockError = NetworkError("every broker of the cluster is away")
        for number, (node_id, address) in enumerate(targets, 1):
            patience_s = None if number == len(targets) else HOME_PATIENCE_S
            try:
                async with asyncio.timeout(patience_s):
                    return node_id, await attempt(address)
            except TimeoutError:
                failure = NetworkError(f"broker {address} did not answer within {HOME_PATIENCE_S:g} s")
            except AuthenticationError:
                raise  # every broker would refuse it
            except PenstockError as error:
                failure = error
            self.note_away(node_id)
        self._failed_at = loop.time()
        raise failure

    def _targets(self, home: int | None) -> list[tuple[int | None, Address]]:
        """Return (broker id, address) of brokers to try: the port's, then others, bootstrap servers last."""
        nodes = self._nodes.by_id
        found: list[tuple[int | None, Address]] = []
        if home is not None and (node := nodes.get(home)) is not None and not node.is_away:
            found.append((home, node.address))
        others = [node for node in nodes.values() if node.node_id != home and not node.is_away]
        random.shuffle(others)
        found += [(node.node_id, node.address) for node in others[:STAND_INS_MAX]]
        known = {node.address for node in nodes.values()}
        bootstrap = [address for address in self._config.bootstrap_servers if address not in known]
        return found + [(None, address) for address in bootstrap]

    async def _connect(self, address: Address) -> Peer:
        """Return a new connection to a broker, with the broker's API versions.

        Before a login, a broker answers ApiVersions only once on a connection, and this answer is left to the
        client. So a gateway without credentials requests the versions on a separate connection.
        """
        if self._has_account:
            return await self.client.greet(address)
        versions = await self._greeted(address)
        return Peer(await self.client.connect(address), versions)

    async def _greeted(self, address: Address) -> NodeVersions:
        """Return a broker's API versions, cached for `VERSIONS_KEPT_S` seconds. Raises PenstockError."""
        loop = asyncio.get_running_loop()
        # Clients that are not logged in cause this: all at once cause one question.
        async with self._asking.setdefault(address, asyncio.Lock()):
            known = self._versions.get(address)
            if known is None or loop.time() - known[1] > VERSIONS_KEPT_S:
                peer = await self.client.greet(address)
                peer.connection.close()
                known = self._versions[address] = peer.versions, loop.time()
        return known[0]

    def _client_of(self, account: Account) -> AsyncClient:
        client = self._clients.get(account)
        if client is None:
            client = self._clients[account] = AsyncClient(account.config)
        return client

    async def _log_in(self, account: Account, client: AsyncClient, address: Address) -> Peer:
        """Return a new connection that is logged in with an account. Raises PenstockError."""
        loop = asyncio.get_running_loop()
        error, until = self._refused.get(account, (None, 0.0))
        if error is not None and loop.time() < until:
            raise error
        try:
            peer = await client.greet(address)
        except AuthenticationError as refusal:
            told = AuthenticationError(f"the account of {account.name}: {refusal}")
            # Wrong logins in a row lock accounts out in some directories of users.
            self._refused[account] = told, loop.time() + FOLLOW_EVERY_S
            raise told from None
        self._refused.pop(account, None)
        return peer

    async def keep_only(self, accounts: Container[Account]) -> None:
        """Close the connections of accounts that are not in `accounts` any more."""
        self._refused = {each: refusal for each, refusal in self._refused.items() if each in accounts}
        for account in [each for each in self._clients if each not in accounts]:
            await self._clients.pop(account).close(0)

    def routes_of(self, ranges: Mapping[int, tuple[int, int]]) -> BrokerRoutes:
        """Return the `BrokerRoutes` for brokers with these API versions; equal versions share one object."""
        key = tuple(sorted(ranges.items()))
        routes = self._routes.get(key)
        if routes is None:
            if len(self._routes) >= ROUTES_MAX:
                self._routes.clear()
            routes = self._routes[key] = BrokerRoutes(ranges, self._translation)
        self.last_routes = routes
        return routes

    def _handed_over(
        self, relay: Attachable, node_id: int | None, client: AsyncClient, peer: Peer
    ) -> UpstreamSocket:
        connection = peer.connection
        routes = self.routes_of(peer.versions.ranges)
        address = connection.address
        transport, tls = connection.hand_over()

        def drop_versions() -> None:
            self._versions.pop(address, None)  # a broker that comes back may be of another release

        upstream = UpstreamSocket(self._sockets, relay, routes, node_id, tls, drop_versions)
        upstream.take_over(transport)
        if connection.session is not None and connection.session.lifetime_s:
            self._renew(upstream, client, peer, connection.session.lifetime_s)
        return upstream

    def _renew(self, upstream: UpstreamSocket, client: AsyncClient, peer: Peer, session_s: float) -> None:
        """Schedule the gateway's re-authentications, each before the broker's session ends."""
        secured, versions = client.secured, peer.versions
        address = peer.connection.address
        loop = asyncio.get_running_loop()

        async def prepare() -> None:
            try:
                assert secured is not None
                authenticator = await secured.authenticator(address, session_s, is_raw=False)
            except PenstockError as error:
                log.warning("%s", error)
                return
            if authenticator is not None:
                version = min(2, versions.highest(ApiKey.SASL_AUTHENTICATE))
                upstream.show(_credentials(authenticator, version, again))

        def again(lifetime_s: float) -> None:
            if lifetime_s > 0:
                upstream.renew_after(lifetime_s * random.uniform(*SESSION_PARTS), begin)

        tasks: set[asyncio.Task[None]] = set()

        def begin() -> None:
            task = loop.create_task(prepare())
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        upstream.renew_after(session_s * random.uniform(*SESSION_PARTS), begin)

    async def ask(self, call: NodeCall, account: Account | None = None) -> Any:
        """Send the request of a `NodeCall` to its broker; return the response, None for acks=0.

        Raises:
            PenstockError: the broker does not answer.
        """
        assert call.node_id is not None
        client = self.client if account is None else self._client_of(account)
        if call.node_id not in client.cluster.nodes:
            await client.refresh()
        peer = await client.peer(call.node_id, SIDE)
        if call.api_key == ApiKey.PRODUCE and not call.message.acks:  # type: ignore[attr-defined]
            peer.connection.send_only(call.message, call.version)
            return None
        return await peer.connection.request(call.message, call.version, client.request_timeout_s)


def _credentials(
    authenticator: Authenticator, version: int, done: Callable[[float], None]
) -> Generator[NodeCall, Any, None]:
    """Yield the requests of a re-authentication; call `done` with the new session's length in seconds."""
    message: Any = authenticator.begin()
    key, at = int(ApiKey.SASL_HANDSHAKE), authenticator.handshake_version
    while message is not None:
        answer = yield NodeCall(key, at, message)
        message = authenticator.receive(answer)
        key, at = int(ApiKey.SASL_AUTHENTICATE), version
    done(authenticator.session_lifetime_ms / 1000)
