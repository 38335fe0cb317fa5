"""The base class of stand-ins for containers, with the methods of Testcontainers' `DockerContainer`."""

from __future__ import annotations

import os
import socket
import sys
from typing import TYPE_CHECKING, Any, NoReturn, Self

from penstock.broker.broker import KafkaBroker
from penstock.errors import ConfigError
from penstock.testing.containers import commands
from penstock.testing.containers.docker_client import ContainerDockerClient
from penstock.testing.containers.environment import (
    ClientListener,
    listener_at,
    node_id_of,
    read_environment,
)
from penstock.testing.containers.wrapped import HOST, ContainerError, ExecResult, WrappedContainer

if TYPE_CHECKING:
    from types import TracebackType

HOST_OF_TLS = "localhost"
"""The host name in the certificates that tests use, since Testcontainers' Kafka has this address."""


class BrokerContainer:
    """A broker in memory in this process, with the methods of a container that runs one in Docker.

    Image, volumes, names, networks, commands and keyword arguments of Docker are stored, but have no effect.
    `broker` is the `KafkaBroker`, with faults on demand.
    """

    port: int
    """The container-side port on which clients are served."""

    serves_kafka = True
    listener_name = "PLAINTEXT"
    security_protocol = "PLAINTEXT"
    log_lines: tuple[str, ...] = ()
    """The lines that the program in the image logs once it is ready, for tests that wait for such a line."""

    def __init__(
        self,
        image: str,
        docker_client_kw: dict[str, Any] | None = None,
        command: str | list[str] | None = None,
        env: dict[str, Any] | None = None,
        name: str | None = None,
        ports: list[int] | None = None,
        volumes: list[tuple[str, str, str]] | None = None,
        network: object = None,
        network_aliases: list[str] | None = None,
        _wait_strategy: Any = None,
        transferables: list[Any] | None = None,
        **kwargs: Any,
    ) -> None:
        self.image = image
        self.env: dict[str, Any] = {} if env is None else env
        self.ports: dict[Any, Any] = {}
        self.volumes: dict[str, dict[str, str]] = {}
        self.tmpfs: dict[str, str] = {}
        self.broker: KafkaBroker | None = None
        """The current `KafkaBroker`; after a stop, the previous one; None before the first start."""
        self._command = command
        self.chosen_name = name
        self._network = network
        self._network_aliases = network_aliases
        self._wait_strategy = _wait_strategy
        self._kwargs = kwargs
        self._container: WrappedContainer | None = None
        self._host = HOST
        self.with_exposed_ports(*(ports or ()))
        for volume in volumes or ():
            self.with_volume_mapping(*volume)

    # --- before the start --------------------------------------------------------------------------------

    def with_env(self, key: str, value: object) -> Self:
        """Set an environment variable of the image; ``KAFKA_*`` variables are settings of the broker."""
        self.env[key] = value
        return self

    def with_envs(self, **variables: object) -> Self:
        self.env.update(variables)
        return self

    def with_env_file(self, env_file: str | os.PathLike[str]) -> Self:
        """Set the environment variables of a file with lines ``NAME=VALUE``."""
        with open(env_file, encoding="utf-8") as file:
            for line in file:
                name, equals, value = line.strip().removeprefix("export ").partition("=")
                if equals and not name.startswith("#"):
                    self.with_env(name.strip(), value.strip().strip("'\""))
        return self

    def with_exposed_ports(self, *ports: int | str) -> Self:
        for port in ports:
            self.ports[str(port)] = None
        return self

    def with_bind_ports(self, container: int | str, host: int | str | None = None) -> Self:
        """Bind a port of the container to a port of this machine, at which the broker will listen."""
        text = str(host).partition("/")[0] if host is not None else ""
        if text and not text.isdecimal():
            raise ConfigError(f"host port {host!r} is no number")
        self.ports[str(container)] = int(text) if text else None
        return self

    def with_network(self, network: object) -> Self:
        self._network = network
        return self

    def with_network_aliases(self, *aliases: str) -> Self:
        self._network_aliases = list(aliases)
        return self

    def with_kwargs(self, **kwargs: Any) -> Self:
        self._kwargs = kwargs
        return self

    def with_command(self, command: str | list[str]) -> Self:
        self._command = command
        return self

    def with_name(self, name: str) -> Self:
        self.chosen_name = name
        return self

    def with_volume_mapping(self, host: str | os.PathLike[str], container: str, mode: str = "ro") -> Self:
        self.volumes[str(host)] = {"bind": container, "mode": mode}
        return self

    def with_tmpfs_mount(self, container_path: str, size: str | None = None) -> Self:
        self.tmpfs[container_path] = size or ""
        return self

    def with_copy_into_container(self, transferable: object, destination: str, mode: int = 0o644) -> Self:
        return self

    def maybe_emulate_amd64(self) -> Self:
        return self

    def waiting_for(self, strategy: Any) -> Self:
        """Set a wait strategy of Testcontainers. The broker is ready before the strategy begins to wait."""
        self._wait_strategy = strategy
        return self

    # --- start and stop ----------------------------------------------------------------------------------

    def configure(self) -> None:
        """Do nothing. Subclasses override this hook, which runs before the start."""

    def _configure(self) -> None:
        """Do nothing. Subclasses override this hook, which runs before the start."""

    def tc_start(self) -> None:
        """Do nothing. Subclasses override this hook, which runs after the start."""

    def create_file(self, content: bytes, path: str) -> None:
        """Do nothing: a broker in this process has no container file system."""

    def start(self, timeout: float = 30) -> Self:
        """Start the broker, and return when clients can connect. Do nothing if the broker runs.

        Raises:
            ConfigError: an environment variable has an invalid value.
            NetworkError: a port given to `with_bind_ports` is in use.
        """
        if self.broker is not None and self.broker.is_running:
            return self
        self.configure()
        self._configure()
        listener = listener_at(self.port, self.env) or ClientListener(
            self.listener_name, self.security_protocol
        )
        reading = read_environment(self.env, listener.protocol != "PLAINTEXT")
        self._host = HOST_OF_TLS if listener.has_tls else HOST
        port = self._host_port()
        if listener.has_tls and not port:
            port = _free_port()  # what is advertised is fixed before the broker listens
        places = listener.settings(HOST, port, self._host)
        own = {"node.id": str(node_id_of(self.env))}
        broker = KafkaBroker(config=places | own | self._defaults() | reading.settings)
        broker.chosen_cluster_id = self._cluster_id()
        self.broker = broker.start()
        self._container = WrappedContainer(self, self.broker, [*reading.remarks, *self.log_lines])
        self.tc_start()
        if self._wait_strategy is not None:
            self._wait_strategy.wait_until_ready(self)
        return self

    def stop(self, force: bool = True, delete_volume: bool = True) -> None:
        """Stop the broker and drop its data. Do nothing if the broker is stopped."""
        if self.broker is not None:
            self.broker.close()
        if self._container is not None:
            self._container.is_removed = True

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        ended = sys.modules.get("penstock.testing.ended")
        if self.broker is not None and error is not None and ended is not None:
            ended.note(self.broker)
        self.stop()

    def _defaults(self) -> dict[str, str]:
        """Return the settings of the broker that the image's environment can override."""
        return {}

    def _cluster_id(self) -> str | None:
        text = self.env.get("CLUSTER_ID") or self.env.get("KAFKA_CLUSTER_ID")
        return None if text is None else str(text)

    def _host_port(self) -> int:
        """Return the port of this machine that was requested with `with_bind_ports`; 0 is any free port."""
        bound = (host for port, host in self.ports.items() if host and port_number(port) == self.port)
        return next(bound, self.port if self._is_on_host_network else 0)

    @property
    def _is_on_host_network(self) -> bool:
        """Return True if ports of the container are ports of this machine (Docker's ``--network host``)."""
        return self._kwargs.get("network_mode") == "host" or self._network == "host"

    def names(self) -> list[str]:
        """Return the names by which other containers reach this one: host name, name and aliases."""
        given = (self._kwargs.get("hostname"), self.chosen_name, *(self._network_aliases or ()))
        return [name for name in given if name]

    def network_name(self) -> str:
        """Return the name of the container's network; ``bridge`` is Docker's default."""
        if self._is_on_host_network:
            return "host"
        return str(getattr(self._network, "name", self._network) or self._kwargs.get("network") or "bridge")

    # --- while it runs -----------------------------------------------------------------------------------

    def get_bootstrap_server(self) -> str:
        """Return the address for clients, as ``host:port``."""
        return f"{self.get_container_host_ip()}:{self.get_exposed_port(self.port)}"

    def get_container_host_ip(self) -> str:
        """Return the host of the broker's address; with TLS, this is the host name in the certificate."""
        return self._host

    def get_exposed_port(self, port: int | str) -> int:
        """Return the port of this machine for the broker's port in the container.

        Raises:
            ContainerError: the container does not run, or `port` is not the broker's port.
        """
        broker = self._running()
        if port_number(port) != self.port:
            raise ContainerError(
                f"port {port} of {self.image} is not served: there is the broker alone, on port {self.port}"
            )
        return broker.port

    def get_container_id(self) -> str:
        return self.get_wrapped_container().id

    def get_wrapped_container(self) -> WrappedContainer:
        """Return the stand-in for the container object of Docker's library.

        Raises:
            ContainerError: the container has not been started.
        """
        if self._container is None:
            raise ContainerError("the container has not been started; call start() or use it in a with block")
        return self._container

    def get_container_info(self) -> None:
        """Return None, as Testcontainers does if Docker has no information."""

    def get_docker_client(self) -> ContainerDockerClient:
        """Return a stand-in for Testcontainers' Docker client, which returns stand-ins of all containers."""
        return ContainerDockerClient()

    def get_logs(self) -> tuple[bytes, bytes]:
        """Return the container's standard output and standard error."""
        return self.get_wrapped_container().logs(), b""

    def reload(self) -> None:
        """Do nothing: `status` is always current."""

    @property
    def status(self) -> str:
        return "not_started" if self._container is None else self._container.status

    def exec(self, command: Any) -> ExecResult:
        """Run a command line of one of Kafka's tools against this broker; other commands are not supported.

        Raises:
            ContainerError: the command is not supported, or the container does not run.
        """
        broker = self._running()
        words = getattr(command, "command", command)  # newer releases have an object that holds it
        try:
            return ExecResult(*commands.run(words, broker.client_settings()["bootstrap.servers"]))
        except commands.CommandUnknown as error:
            raise ContainerError(str(error)) from None

    def wait(self) -> int:
        raise ContainerError("a broker in this process does not end by itself; call stop()")

    def copy_into_container(self, transferable: object, destination: str, mode: int = 0o644) -> NoReturn:
        raise ContainerError("files cannot be copied into a container: the broker runs in this process")

    def copy_from_container(self, source_in_container: str, destination_on_host: object) -> NoReturn:
        raise ContainerError("files cannot be copied out of a container: the broker keeps its data in memory")

    def _running(self) -> KafkaBroker:
        if self.broker is None or not self.broker.is_running:
            raise ContainerError("the container does not run; call start() or use it in a with block")
        return self.broker


def _free_port() -> int:
    with socket.create_server((HOST, 0)) as listening:
        return int(listening.getsockname()[1])


def port_number(port: object) -> int:
    """Return the number of a port such as ``9092/tcp``.

    Raises:
        ConfigError: `port` is no number.
    """
    text = str(port).partition("/")[0]
    if not text.isdecimal():
        raise ConfigError(f"port {port!r} is no number")
    return int(text)
