"""`Broker`: a Kafka broker inside this process, on a thread with an event loop of its own.

    with Broker() as broker:
        producer = SomeKafkaClient(bootstrap_servers=broker.bootstrap_servers)

The broker listens on a socket and implements Kafka's protocol, so any client can use it. A broker that is
stopped and started again keeps its port and its data, also data in memory. `KafkaBroker` is the same class
with defaults for tests.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self, TypeVar, Unpack

from penstock.broker.config.values import BrokerConfig, check_data_dir, log_unheeded, settings_texts
from penstock.broker.fault_injection import FaultInjection
from penstock.broker.metadata.stores import open_store
from penstock.broker.network.listeners import listening_at, reachable, settings_for_clients
from penstock.broker.network.serving import serving
from penstock.broker.partitions.log_store import MemoryStore
from penstock.clock import Clock, MovableClock, SystemClock, movable, stoppable
from penstock.common.hints import with_hints
from penstock.common.listening.serving_thread import Served, ServingThread
from penstock.errors import ConfigError, NetworkError

if TYPE_CHECKING:
    from penstock.broker.client_metrics.newest_values import ClientMetric
    from penstock.broker.client_metrics.service import ClientMetrics
    from penstock.broker.config.keyword_settings import BrokerSettings
    from penstock.broker.faults.faults import Faults
    from penstock.broker.network.server import Server
    from penstock.broker.node import Node
    from penstock.broker.partitions.log_store import LogStore
    from penstock.broker.requests.routes import Interceptor
    from penstock.broker.security.throwaway import Security


T = TypeVar("T")


class ConnectionInfo(NamedTuple):
    """One open connection: its number (for `connection=` of a fault), the client's id and its address."""

    number: int
    client_id: str | None
    address: str


class Companion(Protocol):
    """A server that runs beside a broker and is one of its clients, such as a schema registry."""

    @property
    def url(self) -> str: ...

    def stop(self) -> None: ...


@with_hints("Broker")
class Broker(Served):
    """A Kafka broker with one address, which `start` and `close` start and stop.

    `data_dir` is a directory in Kafka's layout, created if it does not exist; None keeps everything in
    memory. `port` 0 takes a free port. Settings come as `config` under Kafka's dotted names, or as keyword
    arguments with underscores: ``Broker(num_partitions=3)``. Editors and type checkers see the keywords of
    `BrokerSettings`, which are the settings that have an effect. `as_version` is a release of Apache Kafka to
    behave as, such as ``"0.8.2"`` or ``"3.9"``; without it the broker offers everything it has. `listen_07`
    is the port of a second listener, for Kafka 0.7, whose topics are its own; 0 takes a free one.
    `interceptors` wrap every handler, the first outermost (see `penstock.broker.interceptors`). `security` is
    SSL, SASL_PLAINTEXT or SASL_SSL, or a `Security` with more options: throw-away certificates and users, for
    tests; `client_settings` returns what clients need. Without `security`, `config` can hold every security
    setting that a server.properties can. `registry` is True, or a port, for a schema registry beside the
    broker, at `registry_url`: its schemas are in the broker's topic ``_schemas``. The registry needs ``pip
    install "penstock[registry]"``.

    A keyword that is no setting is an error, like any misspelt argument. A dotted name in `config` that is no
    setting is ignored with a warning, as in Apache Kafka: such names come out of files.

    Raises:
        ConfigError: a keyword is no setting (the nearest one is suggested), a value does not fit, or there
            is no such release.
    """

    _defaults: Mapping[str, str] = {}
    """The default settings of this class that differ from Kafka's."""
    _new_clock: Callable[[], Clock] = SystemClock

    def __init__(
        self,
        data_dir: str | os.PathLike[str] | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        config: Mapping[str, object] | None = None,
        clock: Clock | None = None,
        as_version: str | None = None,
        listen_07: int | None = None,
        interceptors: Sequence[Interceptor] = (),
        security: Security | str | None = None,
        registry: bool | int = False,
        **settings: Unpack[BrokerSettings],
    ) -> None:
        check_data_dir(data_dir)
        if clock is not None and not (hasattr(clock, "now_ms") and hasattr(clock, "monotonic")):
            raise ConfigError(f"clock is {clock!r}: an object with now_ms() and monotonic() is needed")
        if config is not None and not isinstance(config, Mapping):
            raise ConfigError(f"config is {config!r}: a mapping of settings is needed")
        if as_version is not None and not isinstance(as_version, str):
            raise ConfigError(f"as_version is {as_version!r}: text is needed, such as '3.9'")
        if not isinstance(host, str):
            raise ConfigError(f"host is {host!r}: text is needed, such as '127.0.0.1'")
        if not isinstance(port, int) or isinstance(port, bool) or not 0 <= port < 1 << 16:
            raise ConfigError(f"port is {port!r}: a number from 0 to 65535 is needed")
        if not isinstance(registry, int) or not 0 <= registry < 1 << 16:
            raise ConfigError(f"registry is {registry!r}: True, or a port from 1 to 65535, is needed")
        if not isinstance(interceptors, Iterable):
            raise ConfigError(f"interceptors is {interceptors!r}: a list of functions is needed")
        texts = settings_texts({**self._defaults, **(config or {})}, settings)
        if data_dir is not None:
            texts["log.dirs"] = str(data_dir)
        if listen_07 is not None:
            texts["penstock.0.7.port"] = str(listen_07)
        self.security: Security | None = None
        """The certificates and users generated for tests; None without the argument `security`."""
        if security is not None:
            from penstock.broker.security.throwaway import security_of

            self.security = security_of(security)
            texts = {**self.security.settings(host, port), **texts}
        self.config = BrokerConfig(texts, as_version)
        if (
            security is None
            and ("listeners" in texts or "port" in texts)
            and (host, port) == ("127.0.0.1", 0)
        ):
            host, port = listening_at(self.config)
        self.host = host
        self.clock: Clock = clock or self._new_clock()
        if clock is None and isinstance(self.clock, MovableClock):
            self.clock.when_moved = self._clock_was_moved
        self._port = port
        self.server: Server | None = None
        """The running server, or None. It belongs to the broker's thread: other threads may only read it."""
        self._address07: tuple[str, int] | None = None
        self._memory: MemoryStore | None = None
        self._interceptors = tuple(interceptors)
        self._thread = ServingThread(self._serving)
        self._numbers = itertools.count(1)
        self._injected = FaultInjection(
            lambda: () if self.server is None else (self.server,), lambda: self._thread.loop
        )
        self._pause: threading.Event | None = None
        self.chosen_cluster_id: str | None = None
        """The cluster id for the broker's start, or None for a random one."""
        self._registry_port = None if registry is False else 0 if registry is True else registry
        self._registry: Companion | None = None

    # --- where it is -------------------------------------------------------------------------------------

    @property
    def port(self) -> int:
        """The port that the broker listens on; before the first start, the requested port."""
        return self._port

    @property
    def bootstrap_servers(self) -> str:
        """The address for clients: ``host:port``."""
        return reachable(self.host, self._port)

    def client_settings(self, user: str | None = None, mechanism: str | None = None) -> dict[str, str]:
        """Return settings for a client of this broker, by names that librdkafka and Penstock's clients use.

        `user` is a user of `security`, by default the first; `mechanism` is one of that user's SASL
        mechanisms.

        Raises:
            ConfigError: there is no such user.
        """
        return settings_for_clients(self.bootstrap_servers, self.security, user, mechanism)

    @property
    def address_07(self) -> str | None:
        """``host:port`` of the listener for Kafka 0.7; None without this listener, and before the start."""
        return None if self._address07 is None else reachable(*self._address07)

    @property
    def registry_url(self) -> str:
        """The URL of the schema registry.

        Raises:
            ConfigError: the broker has no schema registry, or does not run.
        """
        if self._registry is None:
            reason = "it is not running" if self._registry_port is not None else "give registry=True"
            raise ConfigError(f"the broker has no schema registry: {reason}")
        return self._registry.url

    @property
    def data_dir(self) -> str | None:
        return self.config.data_dir

    def __repr__(self) -> str:
        state = "running" if self.is_running else "stopped"
        return f"<Broker {self.bootstrap_servers} {state}, data in {self.data_dir or 'memory'}>"

    # --- starting and stopping ---------------------------------------------------------------------------

    def start(self) -> Self:
        """Start serving; return when clients can connect. Does nothing if the broker runs already.

        Raises:
            NetworkError: the address cannot be listened on.
            StorageError: the data directory cannot be used, or another broker uses it.
            MissingDependencyError: a registry was asked for, and its extra is not installed.
        """
        if not self.is_running:
            log_unheeded(self.config)
        self._thread.start(f"penstock-broker-{self._port}")
        if self._registry_port is not None and self._registry is None:
            try:
                self._registry = self._start_registry(self._registry_port)
            except BaseException:
                self.close()
                raise
        return self

    def _start_registry(self, port: int) -> Companion:
        # Imported by name, like an authorizer: a registry is a client of brokers, and no part of one.
        kind = getattr(import_module("penstock.registry"), "Registry")  # noqa: B009
        config = self.client_settings()
        servers = config.pop("bootstrap.servers")
        started: Companion = kind(servers, host=self.host, port=port, config=config).start()
        self._registry_port = int(started.url.rpartition(":")[2])
        return started

    def close(self) -> None:
        """Stop serving, force the data to disk, release port and directory.

        Does nothing if the broker is stopped.

        Raises:
            StorageError: the data could not be forced to disk.
        """
        self.resume()
        registry, self._registry = self._registry, None
        if registry is not None:
            registry.stop()
        self._thread.stop()

    stop = close

    # --- what stands in its way --------------------------------------------------------------------------

    @property
    def faults(self) -> Faults:
        """The faults of the broker: errors, delays and cut connections that clients get on demand."""
        return self._injected.faults

    def observe(self, interceptor: Interceptor) -> Callable[[], None]:
        """Add an interceptor directly around the handlers: requests that a fault answers do not reach it.

        Returns a function that removes the interceptor.
        """
        return self._injected.observe(interceptor)

    # --- what happens to it ------------------------------------------------------------------------------

    def pause(self) -> None:
        """Freeze the broker, as under SIGSTOP: connections stay open, new ones wait, no answers are sent."""
        if self._pause is not None:
            return
        self._pause = go_on = threading.Event()
        paused = threading.Event()

        def stand_still() -> None:
            paused.set()
            go_on.wait()

        self._running_loop().call_soon_threadsafe(stand_still)
        paused.wait()

    def resume(self) -> None:
        """Continue after `pause`. Does nothing if the broker is not paused."""
        pause, self._pause = self._pause, None
        if pause is not None:
            pause.set()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Pause the broker for the length of a ``with`` block."""
        self.pause()
        try:
            yield
        finally:
            self.resume()

    def kill(self) -> None:
        """End the broker as under kill -9: connections drop, nothing is flushed, no clean shutdown is marked.

        After the next `start` everything that had been written is there; a data directory is recovered as
        after a crash.
        """
        if self.is_running:
            self.resume()
            self._call(lambda server: setattr(server, "dies", True))
            self.close()

    def restart(self, *, kill: bool = False) -> None:
        """Stop (or kill) and start again, with the same port and the same data."""
        if kill:
            self.kill()
        else:
            self.close()
        self.start()

    def advance(self, seconds: float = 0, *, ms: int = 0) -> None:
        """Move the broker's clock forward; timers that are due by then have fired when this method returns.

        Sessions expire, retention deletes, long polls end. Connections do not count as idle for that time.
        ``broker.clock.advance(hours=1)`` does the same, unless a clock was passed to the broker.
        """
        step_ms = ms + round(seconds * 1000)
        movable(self.clock).advance(step_ms)
        if getattr(self.clock, "when_moved", None) is None:  # a clock that is not the broker's own
            self._clock_was_moved(step_ms)

    def _clock_was_moved(self, step_ms: int) -> None:
        """Fire the timers that are due now, in the broker's thread, which may be the caller's."""

        def look(server: Server) -> None:
            for connection in server.connections:
                connection.active_at += step_ms / 1000
            server.clock_moved()

        if self._thread.loop is not None:
            self._call(look)

    def stop_clock(self) -> None:
        """Stop the broker's clock, until `start_clock` or `advance`. Does nothing if the clock is stopped.

        Sessions, retention and timeouts of transactions wait; requests are served.

        Raises:
            ConfigError: the broker was made with a clock that cannot be stopped.
        """
        stoppable(self.clock).stop()

    def start_clock(self) -> None:
        """Let a stopped clock run again, from the time at which it stopped. Does nothing if the clock runs.

        Raises:
            ConfigError: the broker was made with a clock that cannot be stopped.
        """
        stoppable(self.clock).start()

    # --- what happens to share groups --------------------------------------------------------------------

    def expire_locks(self, group: str, topic: str | None = None, partition: int | None = None) -> int:
        """Expire the acquisition locks of a share group; return how many records can be acquired again.

        A `topic` and a `partition` restrict this to their records.
        """
        return self._call(lambda server: server.node.sharing.end_locks(group, topic, partition))

    def end_share_sessions(self, group: str, member_id: str | None = None) -> int:
        """End the share sessions of a group or of one member, as a broker with too many sessions does.

        Returns how many sessions ended. Their records can be acquired again, and the next request of each
        session gets SHARE_SESSION_NOT_FOUND (122).
        """
        return self._call(lambda server: server.node.sharing.end_sessions(group, member_id))

    # --- what happens to logins --------------------------------------------------------------------------

    def expire_sessions(self, user: str | None = None) -> int:
        """Expire the authenticated sessions of a user, or of all users; return the number of sessions.

        A connection with an expired session is closed at its next request, unless that begins a new
        authentication.
        """

        def expire(server: Server) -> int:
            from penstock.broker.security.gate import SaslGate

            count = 0
            for connection in server.connections:
                gate = connection.session.resource(SaslGate)
                if gate is not None and user in (None, connection.session.principal.name):
                    gate.authenticator.end_session(server.monotonic())
                    count += 1
            return count

        return self._call(expire)

    def revoke_user(self, user: str) -> None:
        """Remove all passwords of a user, and end the user's open sessions.

        Later logins fail like those with a wrong password.
        """

        def revoke(server: Server) -> None:
            cluster = server.node.cluster
            names = [key for key in cluster.security.credentials if key[0] == user]
            records = [
                RemoveUserScramCredentialRecord(name=name, mechanism=mechanism) for name, mechanism in names
            ]
            cluster.alter(records, server.node.clock.now_ms())
            for security in server.securities.values():
                if security.users is not None:
                    security.users.passwords.pop(user, None)

        from penstock.protocol.messages.remove_user_scram_credential_record import (
            RemoveUserScramCredentialRecord,
        )

        self._call(revoke)
        self.expire_sessions(user)

    def rotate_certificate(self, *, expired: bool = False, hosts: Sequence[str] | None = None) -> None:
        """Replace the broker's certificate; new connections get the new one.

        `expired` makes a certificate whose validity has ended; `hosts` makes one for these host names only.

        Raises:
            ConfigError: the broker was not made with `security`, or has no TLS.
        """
        if self.security is None or not self.security.has_tls:
            raise ConfigError("a broker without TLS has no certificate; make it with security='SASL_SSL'")
        self.security.rotate_certificate(expired=expired, hosts=hosts)
        if self.is_running:
            self._call(lambda server: server.renew_certificates())

    # --- what it has -------------------------------------------------------------------------------------

    def create_topic(self, name: str | None = None, partitions: int = 1, **settings: object) -> str:
        """Create a topic and return its name, which is generated if `name` is None.

        A setting of the topic is a keyword argument with underscores for dots, such as ``retention_ms=1000``.

        Raises:
            KafkaError: the topic exists, or its name or a setting is invalid.
        """

        def create(server: Server) -> str:
            node = server.node
            return node.cluster.create_topic(name, partitions, settings, node.clock.now_ms())

        return self._call(create)

    def subscribe_to_client_metrics(
        self, metrics: Sequence[str] = ("*",), *, interval_ms: int = 100, match: str = "", name: str = "test"
    ) -> None:
        """Create a subscription to client metrics (KIP-714). The broker needs `penstock.client.metrics`.

        `metrics` are prefixes of metric names, ``*`` for all. `interval_ms`, 100 to 3,600,000, is the push
        interval; a client that already has an interval (five minutes without a subscription) gets the new one
        after that. `match` chooses clients, such as ``client_id=loader-.*``. `name` is the name of the
        subscription; another one of this name is replaced.

        Raises:
            ConfigError: `penstock.client.metrics` is off.
            KafkaError: INVALID_CONFIG (40) or INVALID_REQUEST (42): a value does not fit.
        """
        from penstock.broker.config.resource_keys import check_kept
        from penstock.protocol.field_values import METRICS_RESOURCE
        from penstock.protocol.messages.config_record import ConfigRecord

        texts = {"metrics": ",".join(metrics), "interval.ms": str(interval_ms), "match": match}

        def subscribe(server: Server) -> None:
            node = server.node
            _taken(node)
            check_kept(node.config, METRICS_RESOURCE, texts)
            node.cluster.alter(
                [
                    ConfigRecord(
                        resource_type=METRICS_RESOURCE, resource_name=name, name=key, value=text or None
                    )
                    for key, text in texts.items()
                ],
                node.clock.now_ms(),
            )

        self._call(subscribe)

    def client_metrics(self, name: str = "", client_id: str | None = None) -> list[ClientMetric]:
        """Return the newest value of every metric that clients have pushed, the newest push last.

        `name` is a prefix of metric names; `client_id` restricts the result to one client. What clients have
        pushed stays after they have closed.

        Raises:
            ConfigError: `penstock.client.metrics` is off.
        """
        return [
            row
            for row in self._call(lambda server: _taken(server.node).values.rows())
            if row.name.startswith(name) and client_id in (None, row.client_id)
        ]

    @property
    def connections(self) -> list[ConnectionInfo]:
        """The connections that are open now, oldest first."""

        def look(server: Server) -> list[ConnectionInfo]:
            sessions = [each.session for each in server.connections]
            return [
                ConnectionInfo(each.connection_id, each.client_id, each.client_address) for each in sessions
            ]

        return self._call(look)

    # --- the thread --------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _serving(self) -> AsyncIterator[None]:
        async with serving(
            self.config,
            self._open_store(),
            self.clock,
            self.host,
            self._port,
            interceptors=self._interceptors,
            numbers=self._numbers,
        ) as server:
            self._injected.install(server)
            self._port = server.address[1]
            if self.security is not None:
                self.security.seed(server.node)
            self._address07 = server.address07
            if server.address07 is not None:
                self.config.settings["penstock.0.7.port"] = str(server.address07[1])
            self.server = server
            yield
            self.server = None

    def _open_store(self) -> LogStore:
        if self.config.data_dir is not None:
            store: LogStore = open_store(self.config, self.clock)
        else:
            store = self._memory = self._memory or MemoryStore(self.config.node_id, self.clock)
        if self.chosen_cluster_id is not None:
            store.cluster_id = self.chosen_cluster_id
        return store

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        loop = self._thread.loop
        if loop is None:
            raise NetworkError("the broker is not running; start it first")
        return loop

    def _call(self, function: Callable[[Server], T]) -> T:
        """Call `function` in the broker's thread, which may be the caller's; return what it returns."""
        loop = self._running_loop()

        def run() -> T:
            if self.server is None:
                raise NetworkError("the broker is not running; start it first")
            return function(self.server)

        if asyncio._get_running_loop() is loop:
            return run()
        done: Future[T] = Future()

        def finish() -> None:
            try:
                done.set_result(run())
            except BaseException as error:
                done.set_exception(error)

        loop.call_soon_threadsafe(finish)
        return done.result()


TEST_SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    # Without sessions every Fetch names its partitions, so that a fault finds those it concerns.
    "max.incremental.fetch.session.cache.slots": "0",
}
"""The default settings of `KafkaBroker` that differ from Kafka's: groups form at once, and there are no
fetch sessions."""


@with_hints("KafkaBroker")
class KafkaBroker(Broker):
    """A `Broker` with defaults for tests: the same arguments, attributes and methods.

    Consumer groups form without a delay, every fetch request names all its partitions (no fetch sessions),
    and `advance` can move the clock, which is the system clock until then.
    """

    clock: MovableClock
    """The broker's clock, which ``clock.advance(hours=1)`` moves unless a clock was passed to the broker."""

    _defaults = TEST_SETTINGS
    _new_clock = MovableClock


def _taken(node: Node) -> ClientMetrics:
    if node.client_metrics is None:
        raise ConfigError("no metrics of clients are taken: give the broker penstock_client_metrics=True")
    return node.client_metrics
