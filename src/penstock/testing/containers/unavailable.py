"""Stand-ins for names of Testcontainers that Penstock does not support; their use raises an explanation."""

from __future__ import annotations

from typing import Any, NoReturn

from penstock.testing.containers.images import docker_container_of
from penstock.testing.containers.wrapped import CONTAINERS, ContainerError


class SchemaRegistryContainer:
    """A schema registry in its own container, which Penstock does not support.

    Raises:
        ContainerError: always.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        raise ContainerError(
            "a schema registry needs no container: penstock.registry.Registry(kafka.get_bootstrap_server())"
            " has its address as url"
        )


class OtherContainer:
    """A container of an image other than Kafka's, if testcontainers is not installed: it never starts."""

    def __init__(self, image: str, **options: Any) -> None:
        self.image = image

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("with_", "waiting_for")):
            return lambda *arguments, **options: self
        raise AttributeError(f"DockerContainer has no {name!r} without the package testcontainers")

    def start(self, *arguments: Any, **options: Any) -> NoReturn:
        """Raise `ContainerError`: images other than Kafka's need Docker."""
        raise ContainerError(
            f"{self.image} takes Docker and the package testcontainers; Penstock runs Kafka alone"
        )

    def stop(self, *arguments: Any, **options: Any) -> None:
        """Do nothing, since the container cannot have been started."""

    def __enter__(self) -> NoReturn:
        self.start()

    def __exit__(self, *error: object) -> None:
        """Do nothing, since the container cannot have been entered."""


DockerContainer = docker_container_of(OtherContainer)


class Network:
    """A network of containers, if testcontainers is not installed. The network has no effect."""

    name = id = "penstock"

    def create(self) -> Network:
        return self

    def connect(self, container_id: str, network_aliases: list[str] | None = None) -> None:
        """Connect a stand-in by its id, under further names. All stand-ins run in this process."""
        found = CONTAINERS.get(container_id)
        if found is not None:
            found.join(self.name, network_aliases or ())

    def remove(self) -> None:
        """Do nothing: there is no network."""

    def __enter__(self) -> Network:
        return self

    def __exit__(self, *error: object) -> None:
        """Do nothing: there is no network."""


def network_of(real: type) -> type:
    """Return a class that creates networks of class `real`, or a `Network` if Docker is not available."""

    class AnyNetwork(real):  # type: ignore[misc]
        def __new__(cls, *arguments: Any, **options: Any) -> Any:
            try:
                return real(*arguments, **options)
            except Exception as error:
                if type(error).__name__ != "DockerException":
                    raise
                return Network()

    return AnyNetwork
