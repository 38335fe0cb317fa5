"""`KafkaContainer` and `RedpandaContainer` with Testcontainers' interface, and a broker in this process."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from os import environ
from typing import TYPE_CHECKING, Any, Self

from penstock.testing.containers.container import BrokerContainer

if TYPE_CHECKING:
    from penstock.registry import Registry


@dataclass
class KafkaConfig:
    """Testcontainers' options for containers in a network. They have no effect in this package."""

    limit_broker_to_first_host: bool = field(
        default_factory=lambda: environ.get("TC_KAFKA_LIMIT_BROKER_TO_FIRST_HOST") == "true"
    )


kafka_config = KafkaConfig()


class KafkaContainer(BrokerContainer):
    """A broker with the defaults of `testcontainers.kafka.KafkaContainer`.

    `image` is used only for the version check of `with_kraft`. With a `security_protocol` other than
    PLAINTEXT, environment variables define users and keys, as for the image.
    """

    KAFKA_PORT = 9093
    TC_START_SCRIPT = "/tc-start.sh"
    MIN_KRAFT_TAG = "7.0.0"

    def __init__(
        self,
        image: str = "confluentinc/cp-kafka:7.6.0",
        port: int = KAFKA_PORT,
        wait_strategy_check_string: str = r".*\[KafkaServer id=\d+\] started.*",
        listener_name: str = "PLAINTEXT",
        security_protocol: str = "PLAINTEXT",
        **kwargs: Any,
    ) -> None:
        port = kwargs.pop("port_to_expose", port)
        super().__init__(image, **kwargs)
        self.port = self.port_to_expose = int(port)
        self.listener_name = listener_name
        self.security_protocol = security_protocol
        self.kraft_enabled = False
        self.wait_for = re.compile(wait_strategy_check_string)
        self.boot_command = ""
        self.cluster_id = "MkU3OEVBNTcwNTJENDM2Qk"
        self.listeners = f"{listener_name}://0.0.0.0:{self.port},BROKER://0.0.0.0:9092"
        self.security_protocol_map = f"BROKER:PLAINTEXT,{listener_name}:{security_protocol}"
        self.log_lines = (
            "[KafkaServer id=1] started (kafka.server.KafkaServer)",
            "[BrokerServer id=1] Transition from STARTING to STARTED (kafka.server.BrokerServer)",
            "[KafkaRaftServer nodeId=1] Kafka Server started (kafka.server.KafkaRaftServer)",
        )
        self.with_exposed_ports(self.port)
        self.with_env("KAFKA_LISTENERS", self.listeners)
        self.with_env("KAFKA_LISTENER_SECURITY_PROTOCOL_MAP", self.security_protocol_map)
        self.with_env("KAFKA_INTER_BROKER_LISTENER_NAME", "BROKER")
        self.with_env("KAFKA_BROKER_ID", "1")
        self.with_env("KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR", "1")
        self.with_env("KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS", "1")
        self.with_env("KAFKA_LOG_FLUSH_INTERVAL_MESSAGES", "10000000")
        self.with_env("KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS", "0")

    def with_kraft(self) -> Self:
        """Select KRaft instead of ZooKeeper. The broker never uses ZooKeeper, so only the version is checked.

        Raises:
            ValueError: the image is a Confluent version without KRaft.
        """
        tag = self.image.rpartition(":")[2]
        if re.fullmatch(r"\d+(\.\d+)*", tag) and _version(tag) < _version(self.MIN_KRAFT_TAG):
            raise ValueError(
                f"Provided Confluent Platform's version {tag} is not supported in Kraft mode"
                f" (must be {self.MIN_KRAFT_TAG} or above)"
            )
        self.kraft_enabled = True
        return self

    def with_cluster_id(self, cluster_id: str) -> Self:
        """Set the cluster id, which only KRaft uses."""
        self.cluster_id = cluster_id
        return self

    def configure(self) -> None:
        """Set the image's KRaft variables. In this stand-in, only CLUSTER_ID has an effect."""
        if self.kraft_enabled:
            self.wait_for = re.compile(r".*Kafka Server started.*")
            self.with_env("CLUSTER_ID", self.cluster_id)
            self.with_env("KAFKA_NODE_ID", 1)
            self.with_env("KAFKA_PROCESS_ROLES", "broker,controller")
            self.with_env("KAFKA_CONTROLLER_LISTENER_NAMES", "CONTROLLER")


class RedpandaContainer(BrokerContainer):
    """A broker with the defaults of `testcontainers.kafka.RedpandaContainer`.

    Its schema registry starts when its address is first requested, and needs the extra ``registry``.
    """

    TC_START_SCRIPT = "/var/lib/redpanda/tc-start.sh"

    def __init__(
        self, image: str = "docker.redpanda.com/redpandadata/redpanda:v23.1.13", **kwargs: Any
    ) -> None:
        super().__init__(image, **kwargs)
        self.port = self.redpanda_port = 9092
        self.schema_registry_port = 8081
        self.wait_for = re.compile(r".*Started Kafka API server.*")
        self.log_lines = (
            "redpanda::main - application.cc - Started Kafka API server listening at 0.0.0.0:9092",
        )
        self.with_exposed_ports(self.redpanda_port, self.schema_registry_port)
        self._registry: Registry | None = None

    def _defaults(self) -> dict[str, str]:
        """Return the settings given by ``--set`` in the container's command line.

        An example is ``--set redpanda.auto_create_topics_enabled=false``.
        """
        command = self._command or ""
        words = shlex.split(command) if isinstance(command, str) else list(command)
        found = {}
        for word in words:
            name, _, value = word.removeprefix("--set=").partition("=")
            if name in _OF_REDPANDA:
                found[_OF_REDPANDA[name]] = value
        return found

    def get_schema_registry_address(self) -> str:
        """Return the URL of the schema registry. Raises the errors of `get_exposed_port`."""
        return f"http://{self.get_container_host_ip()}:{self.get_exposed_port(self.schema_registry_port)}"

    def get_exposed_port(self, port: int | str) -> int:
        """Return the port of this machine for a port of the container.

        Raises:
            ContainerError: the container does not run, or does not serve this port.
            MissingDependencyError: the extra ``registry`` is not installed.
        """
        if str(port) != str(self.schema_registry_port):
            return super().get_exposed_port(port)
        if self._registry is None:
            from penstock.registry import Registry

            self._registry = Registry(self.get_bootstrap_server()).start()
        return int(self._registry.url.rpartition(":")[2])

    def stop(self, force: bool = True, delete_volume: bool = True) -> None:
        """Stop the broker and its registry. Do nothing if they are stopped."""
        registry, self._registry = self._registry, None
        if registry is not None:
            registry.stop()
        super().stop(force, delete_volume)


_OF_REDPANDA = {
    "redpanda.auto_create_topics_enabled": "auto.create.topics.enable",
    "redpanda.default_topic_partitions": "num.partitions",
    "redpanda.kafka_batch_max_bytes": "message.max.bytes",
    "redpanda.group_initial_rebalance_delay": "group.initial.rebalance.delay.ms",
    "redpanda.log_retention_ms": "log.retention.ms",
}


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))
