"""`Gateway`: a gateway in the application's process, on a thread with its own event loop."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple, Self

from penstock.client.addresses import Address
from penstock.client.config import ClientConfig
from penstock.common.listening.serving_thread import Served, ServingThread
from penstock.errors import ConfigError
from penstock.gateway import translation as old_versions
from penstock.gateway.accounts.settings import dotted, has_login, without_login
from penstock.gateway.addresses import ID, ServerNames
from penstock.gateway.hooks.chain import Hooks
from penstock.gateway.hooks.hook import Hook, OnBatches, OnRequest, OnResponse
from penstock.gateway.limits import Limits
from penstock.gateway.seen.taps import Seen
from penstock.gateway.server import serving
from penstock.gateway.v07.offsets import SLOT_BYTES_MAX, SLOT_BYTES_MIN

if TYPE_CHECKING:
    import ssl

    from penstock.broker.faults.faults import Faults
    from penstock.gateway.accounts.book import AccountBook
    from penstock.gateway.counters import ClientCount
    from penstock.gateway.server import GatewayServer
    from penstock.gateway.v07.counts import Counts07
    from penstock.gateway.v07.listener import Listener07
    from penstock.gateway.versions import Translation

DEFAULT_PORTS = 100
"""The default number of ports for brokers, counted from the port after the bootstrap port."""

CLIENT_NAME, SERVERS = "client.id", "bootstrap.servers"

CLIENT_ID = "penstock-gateway"


class GatewayPort(NamedTuple):
    """The id and address of a broker in the cluster, and the gateway's port for that broker."""

    node_id: int
    broker: str
    """The address of the broker in the cluster, as host:port."""
    port: int
    is_away: bool


class Gateway(Served):
    """A proxy in front of a Kafka cluster, for clients that may be older or newer than the cluster.

        with Gateway(to="kafka-1:9093,kafka-2:9093") as gateway:
            producer = SomeKafkaClient(bootstrap_servers=gateway.bootstrap_servers)

    Every broker of the cluster has a port of the gateway, and all responses name these ports. The gateway
    keeps nothing on disk.

    Args:
        to: addresses of the cluster, as ``host:port,host:port`` or a list of them.
        port: the bootstrap port for clients; 0 takes a free one.
        host: the address to listen on; other machines can reach the gateway only if this is not loopback.
        ports: the ports of the brokers. By default the 100 ports after `port`, or free ones if `port` is 0.
        advertised_host: the host in responses; None for the address that a client has connected to. ``{id}``
            in it stands for the id of a broker.
        one_port: True serves all brokers at `port`, distinguished by the TLS server names that clients send
            (SNI): this needs `tls_cert`, and ``{id}`` in `advertised_host`.
        config: settings of the connections to the cluster by Kafka's names, such as ``security.protocol``.
        accounts: users that log in at the gateway, and the cluster credentials of each: the path of a file,
            or its tables as mappings (docs/how-to/gateway.md).
        tls_cert: a PEM file or text with the gateway's certificate, followed by its chain; None for clients
            without TLS.
        tls_key: the private key of the certificate, as a file or text; None if it is in the same file.
        limits: the limits of connections, request sizes, memory and times.
        translation: answers requests in versions that the cluster does not have; by default
            `penstock.gateway.translation`. `penstock.gateway.versions.NoTranslation()` refuses them.
        hooks: functions that are called for requests, responses and records (`penstock.gateway.hooks`).
        seen: settings for records about clients: metrics, an access log, captures.
        v07_port: the port for clients of Kafka 0.7; 0 takes a free one, None serves no such clients.
        v07_zookeeper: the ZooKeeper at which the gateway registers as a broker of 0.7, as
            ``host:port,host:port/chroot``.
        v07_broker_id: the broker id that it registers under.
        v07_slot_bytes: the least size in bytes that each record has in the byte offsets of Kafka 0.7, from
            4096 to 524288; it is rounded up to a power of two. Topics with larger records get larger slots.
        v07_messages: ``"wrapped"`` for readers of 0.7 that decompress gzip; ``"plain"`` for those that do
            not, and get values padded with spaces.

    Raises:
        ConfigError: an argument is invalid.
    """

    _holds_records = False

    def __init__(
        self,
        to: str | Sequence[str],
        *,
        port: int = 0,
        host: str = "127.0.0.1",
        ports: Sequence[int] | None = None,
        advertised_host: str | None = None,
        one_port: bool = False,
        config: Mapping[str, object] | None = None,
        accounts: str | os.PathLike[str] | Mapping[str, object] | None = None,
        tls_cert: str | None = None,
        tls_key: str | None = None,
        limits: Limits | None = None,
        translation: Translation | None = None,
        hooks: Iterable[Hook] = (),
        seen: Seen | None = None,
        v07_port: int | None = None,
        v07_zookeeper: str | None = None,
        v07_broker_id: int = 0,
        v07_slot_bytes: int = 4096,
        v07_messages: Literal["wrapped", "plain"] = "wrapped",
    ) -> None:
        if not isinstance(host, str):
            raise ConfigError(f"host is {host!r}: text is needed, such as '127.0.0.1'")
        if advertised_host is not None and (not isinstance(advertised_host, str) or not advertised_host):
            raise ConfigError(f"advertised_host is {advertised_host!r}: the name of a host is needed")
        _check_port("port", port, 0)
        for each in ports or ():
            _check_port("ports", each, 1)
        if v07_port is not None:
            _check_port("v07_port", v07_port, 0)
        elif v07_zookeeper is not None:
            raise ConfigError("v07_zookeeper registers the port for Kafka 0.7: give v07_port as well")
        if v07_zookeeper is not None and (not isinstance(v07_zookeeper, str) or not v07_zookeeper):
            raise ConfigError(f"v07_zookeeper is {v07_zookeeper!r}: host:port of a ZooKeeper is needed")
        if v07_port is not None and (accounts is not None or tls_cert is not None):
            raise ConfigError(
                "clients of Kafka 0.7 have neither login nor TLS: have another gateway for them, "
                "without accounts and tls_cert"
            )
        _check_number("v07_broker_id", v07_broker_id, 0, (1 << 31) - 1)
        _check_number("v07_slot_bytes", v07_slot_bytes, SLOT_BYTES_MIN, SLOT_BYTES_MAX)
        if v07_messages not in ("wrapped", "plain"):
            raise ConfigError(f"v07_messages is {v07_messages!r}: 'wrapped' or 'plain' is needed")
        if one_port and (tls_cert is None or ports is not None or ID not in (advertised_host or "")):
            raise ConfigError(
                "one_port distinguishes brokers by the names that clients with TLS ask for: give tls_cert, "
                "an advertised_host such as 'b{id}.kafka.example', and no ports"
            )
        self._names = ServerNames(advertised_host) if one_port and advertised_host else None
        self._v07 = _V07(v07_port, v07_zookeeper or "", v07_broker_id, v07_slot_bytes, v07_messages)
        self._to = to
        self._given = dict(config or {})
        self.host = host
        self._tls = None if tls_cert is None and tls_key is None else _tls_context(tls_cert, tls_key)
        self._book: AccountBook | None = None
        if accounts is not None:
            from penstock.gateway.accounts.book import AccountBook

            settings = dotted(config)
            config = settings if has_login(settings) else without_login(settings)
            self._book = AccountBook(accounts, {CLIENT_NAME: CLIENT_ID, **settings, SERVERS: to})
        self.config = ClientConfig.of(config, {}, bootstrap_servers=to, client_id=_client_id(config))
        self.limits = limits or Limits()
        self._port = port
        self._ports = ports
        self._advertised_host = advertised_host
        self._translation: Translation = old_versions if translation is None else translation
        self._hooks = Hooks(hooks)
        self._seen = seen or Seen()
        self._server: GatewayServer | None = None
        self._listener07: Listener07 | None = None
        self._thread = ServingThread(self._serving)

    @property
    def port(self) -> int:
        """The bootstrap port; before the first start, the `port` that was given."""
        return self._port

    @property
    def bootstrap_servers(self) -> str:
        """The address for clients to connect to, as host:port."""
        host = self._advertised_host
        return str(Address(self.host if host is None or ID in host else host, self._port))

    @property
    def node_ports(self) -> list[GatewayPort]:
        """The known brokers by id, with their ports at the gateway. Empty while the gateway is stopped."""
        server = self._server
        if server is None:
            return []
        nodes = sorted(server.nodes.by_id.values(), key=lambda node: node.node_id)
        return [GatewayPort(node.node_id, str(node.address), node.port, node.is_away) for node in nodes]

    def clients(self) -> list[ClientCount]:
        """Return the counts of client requests since the start, by software, address, API and version."""
        return [] if self._server is None else self._server.client_counts()

    @property
    def metrics_port(self) -> int | None:
        """The port of the metrics page; None without a metrics page, and while the gateway is stopped."""
        return None if self._server is None else self._server.metrics_port

    def add_hook(self, hook: Hook) -> Hook:
        """Add a hook after the existing ones, for requests from now on, and return it."""
        self._hooks.add(hook)
        return hook

    def on_request(self, *apis: str, blocks: bool = False) -> Callable[[OnRequest], OnRequest]:
        """Return a decorator that adds a function as the `on_request` of a new hook for some APIs.

        Raises:
            ConfigError: there is no such API.
        """

        def add(function: OnRequest) -> OnRequest:
            self.add_hook(Hook(apis, on_request=function, blocks=blocks))
            return function

        return add

    def on_response(self, *apis: str, blocks: bool = False) -> Callable[[OnResponse], OnResponse]:
        """Return a decorator that adds a function as the `on_response` of a new hook for some APIs.

        Raises:
            ConfigError: there is no such API.
        """

        def add(function: OnResponse) -> OnResponse:
            self.add_hook(Hook(apis, on_response=function, blocks=blocks))
            return function

        return add

    def on_batches(self, *apis: str, blocks: bool = False) -> Callable[[OnBatches], OnBatches]:
        """Return a decorator that adds a function as the `on_batches` of a new hook for some APIs.

        Raises:
            ConfigError: there is no such API, or it has no records.
        """

        def add(function: OnBatches) -> OnBatches:
            self.add_hook(Hook(apis, on_batches=function, blocks=blocks))
            return function

        return add

    @property
    def faults(self) -> Faults:
        """The faults to inject between clients and the cluster: `penstock.testing.Faults`."""
        return self._hooks.faults_of()

    @property
    def v07_port(self) -> int | None:
        """The port for clients of Kafka 0.7, or None if such clients are not served."""
        return self._v07.port

    def _rows_07(self) -> list[ClientCount]:
        return [] if self._listener07 is None else self._listener07.counts.rows()

    @property
    def counts_07(self) -> Counts07 | None:
        """The counts of requests of Kafka 0.7 clients since the start; None if none are served."""
        return None if self._listener07 is None else replace(self._listener07.counts)

    @property
    def held_bytes(self) -> int:
        """Total size in bytes of unsent data in buffers, and of frames that are being decoded."""
        return 0 if self._server is None else self._server.held_bytes

    def start(self) -> Self:
        """Start the gateway; return when clients can connect. The cluster may still be unreachable.

        Raises:
            NetworkError: the gateway cannot listen on the address.
        """
        self._thread.start("penstock-gateway")
        return self

    def close(self) -> None:
        """Stop the gateway and close all connections. It may be started again, on the same port."""
        self._thread.stop()

    @asynccontextmanager
    async def _serving(self) -> AsyncIterator[None]:
        ports = self._ports
        if ports is None:
            has_range = self._port and self._names is None
            ports = range(self._port + 1, min(self._port + 1 + DEFAULT_PORTS, 65536)) if has_range else ()
        async with serving(
            self.config,
            self._translation,
            self.limits,
            self.host,
            self._port,
            ports,
            self._advertised_host,
            self._hooks,
            self._seen,
            self._book,
            self._tls,
            self._names,
        ) as server:
            self._port, self._ports = server.port, ports
            self._server = server
            server.more_counts = self._rows_07
            try:
                async with self._serving_07():
                    yield
            finally:
                self._server = None

    @asynccontextmanager
    async def _serving_07(self) -> AsyncIterator[None]:
        """Serve clients of Kafka 0.7 while the block runs, if a port for them is configured."""
        if self._v07.port is None:
            yield
            return
        from penstock.gateway.v07.listener import Options07, serving07  # few gateways have this listener

        given = {"client_id": CLIENT_ID, **self._given} if _client_id(self._given) else self._given
        async with serving07(
            Options07(self._v07.port, *self._v07[1:]),
            self._to,
            given,
            self.config,
            self.limits,
            self.host,
            self._advertised_host,
        ) as listener:
            self._v07 = self._v07._replace(port=listener.server.address[1])
            self._listener07 = listener
            try:
                yield
            finally:
                self._listener07 = None


class _V07(NamedTuple):
    """The arguments of `Gateway` that configure its listener for Kafka 0.7 clients."""

    port: int | None
    zookeeper: str
    broker_id: int
    slot_bytes: int
    form: str


def _client_id(config: Mapping[str, object] | None) -> str | None:
    """Return a client id for the gateway's own requests, or None if `config` already sets one."""
    given = config or {}
    return None if "client.id" in given or "client_id" in given else CLIENT_ID


def _tls_context(certificate: str | None, key: str | None) -> ssl.SSLContext:
    if not certificate or (key is not None and not key):
        raise ConfigError("tls_cert, tls_key: a certificate is needed, and a key unless that is in its file")
    from penstock.security.secrets import Secret
    from penstock.security.tls import keep_asked_name
    from penstock.security.tls_context import TlsSettings, server_context

    context = server_context(TlsSettings(certificate=certificate, key=None if key is None else Secret(key)))
    context.sni_callback = keep_asked_name
    return context


def _check_port(name: str, port: object, least: int) -> None:
    _check_number(name, port, least, 65535)


def _check_number(name: str, value: object, least: int, most: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise ConfigError(f"{name} is {value!r}: a number from {least} to {most} is needed")
