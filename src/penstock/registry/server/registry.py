"""A schema registry in this process, for tests and development; it stores schemas in memory or in a topic."""

from __future__ import annotations

import socket
import threading
import time
import urllib.parse
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.common.extras import missing
from penstock.errors import ConfigError, NetworkError
from penstock.registry.client import RegistryClient
from penstock.registry.server.election import Election
from penstock.registry.server.forwarding import Forwarder
from penstock.registry.server.group_protocol import RegistryIdentity
from penstock.registry.server.logs import TOPIC, RegistryMemoryLog, TopicLog
from penstock.registry.server.membership import MembershipSettings

GROUP_ID = "schema-registry"
START_TIMEOUT_S = 10.0
STOP_PATIENCE_S = 3
"""The time in seconds that running requests have to finish when the registry is stopped."""
ABANDON_AFTER_S = 1.0
"""Further seconds after which a stopping registry closes the connections over which it forwards writes."""


class Registry:
    """A schema registry that is compatible with Confluent's.

    >>> with Registry() as registry:
    ...     registry.client().register("orders-value", Schema('"string"'))
    1

    Without `bootstrap_servers`, schemas are kept in memory. With it, they are stored in the topic
    ``_schemas``, in the format of Confluent's registry, so that Confluent's registry can have used the topic
    before, and can use it again later.

    Without `advertised`, only one registry at a time may write to a topic. With it, all registries of the
    topic elect one in a group, by the protocol of Confluent's registry, and the others forward writes to it.
    """

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] | None = None,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        users: Mapping[str, str] | None = None,
        certificate: str | None = None,
        key: str | None = None,
        config: Mapping[str, object] | None = None,
        topic: str = TOPIC,
        advertised: str | None = None,
        group_id: str = GROUP_ID,
        leader_eligibility: bool = True,
        session_timeout_ms: int = 10_000,
        heartbeat_interval_ms: int = 3_000,
        ca: str | None = None,
    ) -> None:
        """Set up a registry; `start` makes it listen.

        Args:
            bootstrap_servers: the cluster with the topic that stores the schemas; None stores them in memory.
            host: the address to listen on.
            port: the port to listen on; 0 is any free one.
            users: names and passwords of the users that are allowed (basic authentication); None allows all
                requests.
            certificate: a PEM file of certificates, with which the registry serves TLS.
            key: a file with the key of the certificate.
            config: further options of the clients that read and write the topic.
            topic: the name of the topic.
            advertised: the address at which other registries of the topic reach this one: a host, with or
                without a port (``host.name`` of Confluent's registry). None if there is no other registry.
            group_id: the group of all registries, in which they elect one; also the elected one's
                transactional id (``schema.registry.group.id``).
            leader_eligibility: True if this registry may be elected (``leader.eligibility``).
            session_timeout_ms: the time in milliseconds after which a registry that has died is no longer
                elected.
            heartbeat_interval_ms: the interval of each registry's heartbeats, in milliseconds.
            ca: a PEM file of certificates that sign those of the other registries; None uses the system's.

        Raises:
            ConfigError: arguments contradict each other, or one is malformed.
        """
        if (key is not None) and certificate is None:
            raise ConfigError("key belongs to a certificate: give both")
        if advertised is not None and bootstrap_servers is None:
            raise ConfigError("advertised is for registries that share a topic: give bootstrap_servers too")
        if not 0 < heartbeat_interval_ms < session_timeout_ms < 1 << 31:
            raise ConfigError(
                f"heartbeat_interval_ms is {heartbeat_interval_ms}, session_timeout_ms {session_timeout_ms}: "
                "the first is above 0 and below the second"
            )
        self._advertised = None if advertised is None else _host_and_port(advertised)
        self._membership = MembershipSettings(group_id, session_timeout_ms, heartbeat_interval_ms)
        self._is_eligible = leader_eligibility
        self._ca = ca
        self._election: Election | None = None
        self._forwarder: Forwarder | None = None
        self._servers = bootstrap_servers
        self._address = (host, port)
        self._users = users
        self._certificate, self._key = certificate, key
        self._config, self._topic = config, topic
        self._log: RegistryMemoryLog | TopicLog | None = None
        self._server: Any = None
        self._thread: threading.Thread | None = None
        self._socket: socket.socket | None = None

    @property
    def url(self) -> str:
        """Return the URL for clients. Raises `ConfigError` before the start."""
        if self._socket is None:
            raise ConfigError("the registry has not been started: use it in a with statement, or call start")
        host, port = self._socket.getsockname()[:2]
        return f"{'https' if self._certificate else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"

    def client(self, **settings: object) -> RegistryClient:
        """Return a client of this registry; `settings` are those of `RegistryClient` except the URL."""
        return RegistryClient({"url": self.url, **settings})

    def start(self) -> Registry:
        """Read the schemas, begin to listen, and return this registry.

        Raises:
            MissingDependencyError: the extra ``registry`` is not installed.
            NetworkError: the address cannot be listened on, or the cluster cannot be reached.
            KafkaError, ConfigError: the topic or the group cannot be used, or another registry has this URL.
            RequestTimeoutError: there is no outcome of an election within 60 s.
        """
        try:
            import uvicorn

            from penstock.registry.server.app import application
        except ImportError as error:
            raise missing(error, "a schema registry") from None
        try:
            self._socket = _listening(self._address)
            self._log = self._opened_log()
            if self._election is not None:
                self._forwarder = Forwarder(self._election, self._ca, passes_users=self._users is not None)
            config = uvicorn.Config(
                application(self._log, self._users, self._forwarder),
                log_config=None,
                access_log=False,
                lifespan="off",
                ws="none",
                http="h11",
                loop="asyncio",
                server_header=False,
                timeout_graceful_shutdown=STOP_PATIENCE_S,
                ssl_certfile=self._certificate,
                ssl_keyfile=self._key,
            )
            self._server = uvicorn.Server(config)
            self._thread = threading.Thread(
                target=self._server.run,
                kwargs={"sockets": [self._socket]},
                name="penstock-registry",
                daemon=True,
            )
            self._thread.start()
            self._await_start()
            if self._election is not None:
                self._election.start()
        except BaseException:
            self.stop()
            raise
        return self

    def _opened_log(self) -> RegistryMemoryLog | TopicLog:
        if self._servers is None:
            return RegistryMemoryLog()
        if self._advertised is None:
            return TopicLog(self._servers, self._config, self._topic)
        log = TopicLog(self._servers, self._config, self._topic, self._membership.group_id)
        assert self._socket is not None
        host, port = self._advertised
        identity = RegistryIdentity(
            host,
            port or self._socket.getsockname()[1],
            "https" if self._certificate else "http",
            self._is_eligible,
        )
        self._election = Election(self._servers, self._config, identity, self._membership, log)
        log.on_fenced = self._election.fenced
        return log

    @property
    def is_elected(self) -> bool:
        """Return True if this registry writes, and False if it forwards writes to another registry."""
        if self._election is None:
            return self._socket is not None
        return self._election.outcome.is_own

    def _await_start(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        assert self._thread is not None
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > deadline:
                raise NetworkError("the registry did not start: see its log for the reason")
            time.sleep(0.005)

    def stop(self) -> None:
        """Stop listening, and close all connections. Another registry is elected at once."""
        if self._forwarder is not None:
            self._forwarder.stop()
        if self._election is not None:
            self._election.stop()
            self._election = None
        if self._server is not None:
            self._server.should_exit = True
        if self._thread is not None:
            self._thread.join(STOP_PATIENCE_S + ABANDON_AFTER_S)
            if self._forwarder is not None:
                self._forwarder.abandon()
            self._thread.join()
            self._thread = None
        self._forwarder = None
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._log is not None:
            self._log.close()
            self._log = None

    def __enter__(self) -> Registry:
        return self if self._socket is not None else self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<Registry {self.url if self._socket is not None else 'not started'}>"


def _host_and_port(text: str) -> tuple[str, int | None]:
    """Split ``host``, ``host:port`` or ``[host]:port``; return the host, and the port or None."""
    try:
        parts = urllib.parse.urlsplit(f"//{text}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or parts.path or parts.username or port == 0:
        raise ConfigError(f"advertised is {text!r}: a host is needed, and maybe a port, as registry-1:8081")
    return host, port


def _listening(address: tuple[str, int]) -> socket.socket:
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    # Without the name of TCP, asyncio would not set TCP_NODELAY.
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(128)
    except OSError as error:
        made.close()
        raise NetworkError(
            f"the registry cannot listen on {address[0]}:{address[1]}: {error.strerror}"
        ) from None
    return made
