"""`Broker`: a Kafka broker inside this process, on a thread with an event loop of its own.

    with Broker() as broker:
        producer = SomeKafkaClient(bootstrap_servers=broker.bootstrap_servers)

It listens on a socket and implements Kafka's protocol, so any client can use it. Started, stopped and
started again it keeps its port and its data, also those in memory.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, Self, Unpack

from penstock.broker.config.values import BrokerConfig, check_data_dir, log_unheeded, settings_texts
from penstock.broker.metadata.stores import open_store
from penstock.broker.network.listeners import listening_at, reachable
from penstock.broker.network.serving import serving
from penstock.broker.partitions.log_store import MemoryStore
from penstock.clock import Clock, SystemClock
from penstock.common.hints import with_hints
from penstock.common.listening.serving_thread import Served, ServingThread
from penstock.errors import ConfigError

if TYPE_CHECKING:
    from penstock.broker.config.keyword_settings import BrokerSettings
    from penstock.broker.interceptors import InterceptorChain
    from penstock.broker.network.connection import Connection
    from penstock.broker.network.server import Server
    from penstock.broker.partitions.log_store import LogStore
    from penstock.broker.requests.routes import Interceptor
    from penstock.broker.security.throwaway import Security


class Companion(Protocol):
    """A server that runs beside a broker as a client of it, such as a schema registry."""

    @property
    def url(self) -> str: ...

    def stop(self) -> None: ...


@with_hints("Broker")
class Broker(Served):
    """One broker on one address.

    `data_dir` is a directory in Kafka's layout, made if need be; None keeps everything in memory.
    `port` 0 takes a free port. Settings come as `config` under Kafka's dotted names, or as keyword
    arguments with underscores: ``Broker(num_partitions=3)``; those of `BrokerSettings`, which have an effect,
    are seen by editors and type checkers. `as_version` is a release of Apache Kafka to behave as, such as
    ``"0.8.2"`` or ``"3.9"``; without it the broker offers everything it has. `listen_07` is the port of a
    second listener, for Kafka 0.7, whose topics are its own; 0 takes a free one.
    `interceptors` stand around every handler, the first outermost (see `penstock.broker.interceptors`).
    `security` is SSL, SASL_PLAINTEXT or SASL_SSL, or a `Security` with more options: throw-away certificates
    and users, for tests; `client_settings` has what clients need. Without it, `config` can say all that a
    file can. `registry` is True, or a port, for a schema registry beside the broker, at `registry_url`: its
    schemas are in the broker's topic ``_schemas``. It needs ``pip install "penstock[registry]"``.

    A keyword that is no setting is an error, as a misspelt argument of any function. A dotted name in
    `config` that is none is ignored with a warning, as Apache Kafka does it: such names come out of files.

    Raises:
        ConfigError: a keyword is no setting (the nearest one is suggested), a value does not fit, or there
            is no such release.
    """

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
        texts = settings_texts(config or {}, settings)
        if data_dir is not None:
            texts["log.dirs"] = str(data_dir)
        if listen_07 is not None:
            texts["penstock.0.7.port"] = str(listen_07)
        self.security: Security | None = None
        """Throw-away certificates and users, where there are some."""
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
        self.clock: Clock = clock or SystemClock()
        self._port = port
        self.server: Server | None = None
        """What serves while it runs. It belongs to the broker's thread: for looking, not for touching."""
        self._address07: tuple[str, int] | None = None
        self._memory: MemoryStore | None = None
        self._interceptors = tuple(interceptors)
        self._thread = ServingThread(self._serving)
        self._registry_port = None if registry is False else 0 if registry is True else registry
        self._registry: Companion | None = None

    # --- where it is -------------------------------------------------------------------------------------

    @property
    def port(self) -> int:
        """The port it listens on; the one asked for as long as it has not been started."""
        return self._port

    @property
    def bootstrap_servers(self) -> str:
        """The address for clients: ``host:port``."""
        return reachable(self.host, self._port)

    def client_settings(self, user: str | None = None, mechanism: str | None = None) -> dict[str, str]:
        """Settings for a client of this broker, by librdkafka's names, which Penstock's clients understand.

        `user` is one of those of `security`, by default the first; `mechanism` one of its mechanisms.

        Raises:
            ConfigError: there is no such user.
        """
        found = {"bootstrap.servers": self.bootstrap_servers}
        if self.security is not None:
            found |= self.security.client_settings(user, mechanism)
        return found

    @property
    def address_07(self) -> str | None:
        """``host:port`` of the listener for Kafka 0.7; None where there is none, or not yet."""
        return None if self._address07 is None else reachable(*self._address07)

    @property
    def registry_url(self) -> str:
        """The URL of the schema registry.

        Raises:
            ConfigError: there is none, or the broker does not run.
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
        """Start serving; return when clients can connect. Does nothing if it runs already.

        Raises:
            NetworkError: the address cannot be listened on.
            StorageError: the data directory cannot be used, or another broker uses it.
            MissingDependencyError: there is to be a registry, and its extra is not installed.
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
        # By its name, as an authorizer: a registry is a client of brokers, and no part of one.
        kind = getattr(import_module("penstock.registry"), "Registry")  # noqa: B009
        config = self.client_settings()
        servers = config.pop("bootstrap.servers")
        started: Companion = kind(servers, host=self.host, port=port, config=config).start()
        self._registry_port = int(started.url.rpartition(":")[2])
        return started

    def close(self) -> None:
        """Stop serving, force the data to disk, let go of port and directory. Harmless when stopped.

        Raises:
            StorageError: the data could not be forced to disk.
        """
        registry, self._registry = self._registry, None
        if registry is not None:
            registry.stop()
        self._thread.stop()

    stop = close

    # --- the thread --------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _serving(self) -> AsyncIterator[None]:
        store = self._open_store()
        async with serving(
            self.config,
            store,
            self.clock,
            self.host,
            self._port,
            interceptors=self._interceptors,
            connect=self._connect(),
        ) as server:
            self._intercept(server.node.interceptors)
            self._port = server.address[1]
            if self.security is not None:
                self.security.seed(server.node)
            self._address07 = server.address07
            if server.address07 is not None:
                self.config.settings["penstock.0.7.port"] = str(server.address07[1])
            self.server = server
            yield
            self.server = None

    def _intercept(self, chain: InterceptorChain) -> None:
        """Put more interceptors into the chain of the broker that has just been started."""

    def _connect(self) -> Callable[[Server], Connection] | None:
        """What makes the object of each connection; None for the usual `Connection`."""
        return None

    def _open_store(self) -> LogStore:
        if self.config.data_dir is not None:
            return open_store(self.config, self.clock)
        if self._memory is None:
            self._memory = MemoryStore(self.config.node_id, self.clock)
        return self._memory
