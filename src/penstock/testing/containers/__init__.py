"""Testcontainers' Kafka without Docker: the same names, arguments and methods, and a broker in this process.

    from penstock.testing.containers import KafkaContainer  # was: testcontainers.kafka

    with KafkaContainer() as kafka:
        producer = SomeKafkaClient(bootstrap_servers=kafka.get_bootstrap_server())

With ``pytest --penstock-containers``, test suites need not change their imports. Features that need Docker,
such as another image, a network between containers or a shell in one, raise `ContainerError`, whose message
says what to do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.common.lazy_names import lazy_names

if TYPE_CHECKING:
    from penstock.testing.containers.kafka import KafkaContainer as KafkaContainer
    from penstock.testing.containers.kafka import RedpandaContainer as RedpandaContainer
    from penstock.testing.containers.kafka import kafka_config as kafka_config
    from penstock.testing.containers.unavailable import SchemaRegistryContainer as SchemaRegistryContainer
    from penstock.testing.containers.wrapped import ContainerError as ContainerError

_HOMES = {
    "ContainerError": "wrapped",
    "KafkaContainer": "kafka",
    "RedpandaContainer": "kafka",
    "SchemaRegistryContainer": "unavailable",
    "kafka_config": "kafka",
}

__all__ = ["ContainerError", "KafkaContainer", "RedpandaContainer", "SchemaRegistryContainer", "kafka_config"]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
