"""A schema registry in this process: for tests and laptops, in memory or in a topic of any Kafka."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.common.extras import missing
from penstock.errors import ConfigError, NetworkError
from penstock.registry.client import RegistryClient
from penstock.registry.server.logs import TOPIC, MemoryLog, TopicLog

START_TIMEOUT_S = 10.0


class Registry:
    """A schema registry, which answers as Confluent's does.

    >>> with Registry() as registry:
    ...     registry.client().register("orders-value", Schema('"string"'))
    1

    Without `bootstrap_servers` schemas are kept in memory. With it they are in the topic ``_schemas``, in the
    records of Confluent's registry, which may have written the topic before and may take it over again. One
    registry at a time may write to a topic.
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
    ) -> None:
        """Take where it listens, and where schemas are kept.

        Args:
            bootstrap_servers: a Kafka whose topic keeps the schemas.
            host: the address to listen on.
            port: the port to listen on; 0 is any free one.
            users: names and passwords of those that may ask (basic authentication); None for all.
            certificate: a file of certificates in PEM: the registry speaks TLS.
            key: a file with the key of the certificate.
            config: further options of the clients that read and write the topic.
            topic: the name of the topic.
        """
        if (key is not None) and certificate is None:
            raise ConfigError("key belongs to a certificate: give both")
        self._servers = bootstrap_servers
        self._address = (host, port)
        self._users = users
        self._certificate, self._key = certificate, key
        self._config, self._topic = config, topic
        self._log: MemoryLog | TopicLog | None = None
        self._server: Any = None
        self._thread: threading.Thread | None = None
        self._socket: socket.socket | None = None

    @property
    def url(self) -> str:
        """The URL for clients. Raises `ConfigError` before the start."""
        if self._socket is None:
            raise ConfigError("the registry has not been started: use it in a with statement, or call start")
        host, port = self._socket.getsockname()[:2]
        return f"{'https' if self._certificate else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"

    def client(self, **settings: object) -> RegistryClient:
        """Return a client of this registry; `settings` are those of `RegistryClient` beside the URL."""
        return RegistryClient({"url": self.url, **settings})

    def start(self) -> Registry:
        """Read the schemas, listen, and return this registry.

        Raises:
            MissingDependencyError: the extra ``registry`` is not installed.
            NetworkError: the address cannot be listened on, or the Kafka cannot be reached.
            KafkaError, ConfigError: the topic cannot be used.
        """
        try:
            import uvicorn

            from penstock.registry.server.app import application
        except ImportError as error:
            raise missing(error, "a schema registry") from None
        self._log = (
            MemoryLog() if self._servers is None else TopicLog(self._servers, self._config, self._topic)
        )
        try:
            self._socket = _listening(self._address)
            config = uvicorn.Config(
                application(self._log, self._users),
                log_config=None,
                access_log=False,
                lifespan="off",
                ws="none",
                http="h11",
                loop="asyncio",
                server_header=False,
                timeout_graceful_shutdown=3,
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
        except BaseException:
            self.stop()
            raise
        return self

    def _await_start(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        assert self._thread is not None
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > deadline:
                raise NetworkError("the registry did not start: see its log for the reason")
            time.sleep(0.005)

    def stop(self) -> None:
        """Stop listening, and close what the registry has open."""
        if self._server is not None:
            self._server.should_exit = True
        if self._thread is not None:
            self._thread.join()
            self._thread = None
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
