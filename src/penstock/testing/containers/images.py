"""Stand-ins for `DockerContainer` with an image of Kafka, or of its schema registry, without Docker.

Some test suites start these images with Testcontainers' generic class. Containers of all other images are
left to the package testcontainers.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Self

from penstock.testing.containers.container import BrokerContainer, port_number
from penstock.testing.containers.environment import client_port, listener_at, node_id_of
from penstock.testing.containers.wrapped import BROKERS, ContainerError, ExecResult, WrappedContainer

if TYPE_CHECKING:
    from penstock.registry import Registry

KAFKA_IMAGES = frozenset(
    (
        "apache/kafka",
        "apache/kafka-native",
        "bitnami/kafka",
        "bitnamilegacy/kafka",
        "confluentinc/confluent-local",
        "confluentinc/cp-enterprise-kafka",
        "confluentinc/cp-kafka",
        "confluentinc/cp-server",
    )
)
REGISTRY_IMAGES = frozenset(("confluentinc/cp-schema-registry",))

_BOOTSTRAP = "SCHEMA_REGISTRY_KAFKASTORE_BOOTSTRAP_SERVERS"
KAFKA_PORT = 9092
REGISTRY_PORT = 8081


def name_of(image: str) -> str:
    """Return the name of an image without the host of its store, its tag and its digest.

    >>> name_of("docker.io/confluentinc/cp-kafka:7.6.1")
    'confluentinc/cp-kafka'
    """
    words = image.partition("@")[0].split("/")
    words[-1] = words[-1].partition(":")[0]
    return "/".join(words[-2:])


class KafkaImage(BrokerContainer):
    """A stand-in for a container of a Kafka image; it serves the listener whose port is bound or exposed."""

    port = KAFKA_PORT

    def start(self, timeout: float = 30) -> Self:
        """Start the broker, and return when clients can connect. Raises as `BrokerContainer.start` does."""
        self.port = self._served_port()
        node_id = node_id_of(self.env)
        self.log_lines = (
            f"[KafkaServer id={node_id}] started (kafka.server.KafkaServer)",
            f"[KafkaRaftServer nodeId={node_id}] Kafka Server started (kafka.server.KafkaRaftServer)",
        )
        return super().start(timeout)

    def _served_port(self) -> int:
        """Return the container-side port of the listener that is reachable from this machine."""
        if self._is_on_host_network and not self.ports:
            return client_port(self.env) or self.port
        numbers = {port_number(port): host for port, host in self.ports.items()}
        served = [number for number in numbers if listener_at(number, self.env) is not None]
        bound = [number for number in served if numbers[number]]
        return next(iter([*bound, *served]), self.port)


class RegistryProcess:
    """The schema registry of a stand-in container, which restarts with the same port and schemas."""

    def __init__(self, brokers: list[str], port: int) -> None:
        self._brokers = brokers
        self._port = port
        self._registry: Registry | None = None

    @property
    def is_running(self) -> bool:
        return self._registry is not None

    @property
    def port(self) -> int:
        """The registry's port on this machine. It stays the same after the first start."""
        return self._port

    def start(self) -> None:
        from penstock.registry import Registry

        if self._registry is None:
            self._registry = Registry(self._brokers, port=self._port).start()
            self._port = int(self._registry.url.rpartition(":")[2])

    def close(self) -> None:
        registry, self._registry = self._registry, None
        if registry is not None:
            registry.stop()

    kill = close

    def restart(self) -> None:
        self.close()
        self.start()

    def pause(self) -> None:
        raise ContainerError("a schema registry in this process cannot be paused; call stop() and start()")

    resume = pause


class RegistryImage(BrokerContainer):
    """A stand-in for a container with Confluent's schema registry: a `Registry` in this process."""

    port = REGISTRY_PORT
    serves_kafka = False
    log_lines = ("Server started, listening for requests... (io.confluent.kafka.schemaregistry.rest)",)
    _process: RegistryProcess | None = None

    def start(self, timeout: float = 30) -> Self:
        """Start the registry, and return when it answers requests. Do nothing if it runs.

        Raises:
            ContainerError: the environment names no brokers.
            MissingDependencyError: the extra ``registry`` is not installed.
            NetworkError: a port given to `with_bind_ports` is in use, or the brokers are not reached.
        """
        if self._process is None or not self._process.is_running:
            listening = re.search(r":(\d+)", str(self.env.get("SCHEMA_REGISTRY_LISTENERS", "")))
            self.port = int(listening[1]) if listening else REGISTRY_PORT
            self._process = RegistryProcess(self._brokers(), self._host_port())
            self._process.start()
            self._container = WrappedContainer(self, self._process, [*self.log_lines])
            if self._wait_strategy is not None:
                self._wait_strategy.wait_until_ready(self)
        return self

    def _brokers(self) -> list[str]:
        """Return the addresses of the registry's brokers; names of stand-ins become their addresses."""
        text = str(self.env.get(_BOOTSTRAP, ""))
        addresses = [each.strip().rpartition("//")[2] for each in text.split(",") if each.strip()]
        if not addresses:
            raise ContainerError(f"{self.image} takes the addresses of brokers in {_BOOTSTRAP}")
        found = []
        for address in addresses:
            broker = BROKERS.get(address.rpartition(":")[0])
            found.append(address if broker is None else broker.get_bootstrap_server())
        return found

    def stop(self, force: bool = True, delete_volume: bool = True) -> None:
        """Stop the registry. Do nothing if it is stopped."""
        if self._process is not None:
            self._process.close()
        if self._container is not None:
            self._container.is_removed = True

    def exec(self, command: Any) -> ExecResult:
        raise ContainerError("a schema registry in this process runs no commands")

    def get_exposed_port(self, port: int | str) -> int:
        """Return the port of this machine for the registry's port in the container.

        Raises:
            ContainerError: the container does not run, or `port` is not the registry's port.
        """
        if self._process is None or not self._process.is_running:
            raise ContainerError("the container does not run; call start() or use it in a with block")
        if port_number(port) != self.port:
            raise ContainerError(f"port {port} of {self.image} is not served, only port {self.port}")
        return self._process.port


def docker_container_of(real: type) -> type:
    """Return a class that makes stand-ins for images of Kafka, and containers of class `real` for others."""

    class DockerContainer(real):  # type: ignore[misc]
        def __new__(cls, image: str = "", *arguments: Any, **options: Any) -> Any:
            name = name_of(str(image))
            if cls is DockerContainer and name in KAFKA_IMAGES:
                return KafkaImage(image, *arguments, **options)
            if cls is DockerContainer and name in REGISTRY_IMAGES:
                return RegistryImage(image, *arguments, **options)
            return super().__new__(cls)

    DockerContainer.__doc__ = real.__doc__
    return DockerContainer
