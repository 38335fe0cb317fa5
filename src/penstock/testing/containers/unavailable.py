"""What Testcontainers has and Penstock has not: each says so when it is made or started."""

from __future__ import annotations

from typing import Any, NoReturn

from penstock.testing.containers.container import ContainerError


class SchemaRegistryContainer:
    """A schema registry in a container of its own, whose options Penstock does not know.

    Raises:
        ContainerError: always.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        raise ContainerError(
            "a schema registry needs no container: penstock.registry.Registry(kafka.get_bootstrap_server())"
            " has its address as url"
        )


class DockerContainer:
    """Any image, where the package testcontainers is not installed: it can be described, not started."""

    def __init__(self, image: str, **options: Any) -> None:
        self.image = image

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("with_", "waiting_for")):
            return lambda *arguments, **options: self
        raise AttributeError(f"DockerContainer has no {name!r} without the package testcontainers")

    def start(self, *arguments: Any, **options: Any) -> NoReturn:
        """Raise `ContainerError`: other images than Kafka's take Docker."""
        raise ContainerError(
            f"{self.image} takes Docker and the package testcontainers; Penstock runs Kafka alone"
        )

    def stop(self, *arguments: Any, **options: Any) -> None:
        """Do nothing: it cannot have been started."""

    def __enter__(self) -> NoReturn:
        self.start()

    def __exit__(self, *error: object) -> None:
        """Do nothing: it cannot have been entered."""


class Network:
    """A network of containers, where the package testcontainers is not installed. It has no effect."""

    name = id = "penstock"

    def create(self) -> Network:
        return self

    def connect(self, *arguments: Any, **options: Any) -> None:
        """Do nothing: all that runs is in this process."""

    def remove(self) -> None:
        """Do nothing: there is no network."""

    def __enter__(self) -> Network:
        return self

    def __exit__(self, *error: object) -> None:
        """Do nothing: there is no network."""


def network_of(real: type) -> type:
    """Return a class that makes networks of class `real`, or without Docker a `Network`."""

    class AnyNetwork(real):  # type: ignore[misc]
        def __new__(cls, *arguments: Any, **options: Any) -> Any:
            try:
                return real(*arguments, **options)
            except Exception as error:
                if type(error).__name__ != "DockerException":
                    raise
                return Network()

    return AnyNetwork
