"""Replacements for the part of Docker's library that Kafka test suites use: clients and networks.

`docker.from_env` returns a `DockerClient` of this module. It finds the stand-ins of Kafka's containers by id
or name; all other calls are passed to this machine's Docker, if there is one.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any, NoReturn

from penstock.testing.containers.wrapped import CONTAINERS, HOST, ContainerError, WrappedContainer

DockerException = APIError = NotFound = ImageNotFound = ContainerError
"""The exceptions of `docker.errors`, for machines without that package."""


class DockerNetwork:
    """A network of Docker's library. Stand-ins join it without effect, as all run in this process."""

    def __init__(self, name: str, real: Any = None) -> None:
        self.name = name
        self.id = self.short_id = uuid.uuid4().hex if real is None else real.id
        self.attrs: dict[str, Any] = {"Name": name, "Id": self.id}
        self._real = real

    def connect(self, container: Any, aliases: list[str] | None = None, **options: Any) -> None:
        """Connect a container, given by its id or as an object.

        `aliases` are the container's names in the network.

        Raises:
            ContainerError: no stand-in has the id, and there is no Docker.
        """
        found = CONTAINERS.get(getattr(container, "id", container))
        if found is not None:
            found.join(self.name, aliases or ())
        elif self._real is not None:
            self._real.connect(container, aliases=aliases, **options)
        else:
            raise ContainerError(f"no such container: {container}")

    def disconnect(self, container: Any, **options: Any) -> None:
        """Disconnect a container that runs in Docker. For a stand-in, do nothing: it stays reachable."""
        if self._real is not None and getattr(container, "id", container) not in CONTAINERS:
            self._real.disconnect(container, **options)

    def reload(self) -> None:
        """Do nothing: the stand-in has no state that Docker could change."""

    def remove(self) -> None:
        if self._real is not None:
            self._real.remove()


class DockerNetworks:
    """The networks of a `DockerClient`."""

    def __init__(self, real: Any) -> None:
        self._real = real
        self._made: dict[str, DockerNetwork] = {}

    def create(self, name: str, *arguments: Any, **options: Any) -> DockerNetwork:
        real = None if self._real is None else self._real.networks.create(name, *arguments, **options)
        self._made[name] = DockerNetwork(name, real)
        return self._made[name]

    def get(self, network_id: str, *arguments: Any, **options: Any) -> Any:
        """Return the network with an id or a name.

        Raises:
            ContainerError: this client created no such network, and there is no Docker.
        """
        for network in self._made.values():
            if network_id in (network.id, network.name):
                return network
        if self._real is None:
            raise ContainerError(f"no such network: {network_id}")
        return self._real.networks.get(network_id, *arguments, **options)

    def list(self, *arguments: Any, **options: Any) -> Any:
        if self._real is not None:
            return self._real.networks.list(*arguments, **options)
        return [*self._made.values()]

    def prune(self, *arguments: Any, **options: Any) -> Any:
        return {} if self._real is None else self._real.networks.prune(*arguments, **options)


class DockerContainers:
    """The containers of a `DockerClient`: stand-ins, and Docker's containers if there is a Docker."""

    def __init__(self, real: Any, reason: str) -> None:
        self._real = real
        self._reason = reason

    def get(self, container_id: str) -> Any:
        """Return the container with an id, a short id or a name.

        Raises:
            ContainerError: there is no such stand-in, and no Docker.
        """
        for container in CONTAINERS.values():
            if container_id in (container.id, container.short_id, container.name):
                return container
        if self._real is None:
            raise ContainerError(f"no such container: {container_id}")
        return self._real.containers.get(container_id)

    def list(self, *arguments: Any, **options: Any) -> Any:
        """Return the stand-ins that run, and the containers of Docker."""
        running: list[Any] = [each for each in CONTAINERS.values() if each.status == "running"]
        return running + ([] if self._real is None else self._real.containers.list(*arguments, **options))

    def __getattr__(self, name: str) -> Any:
        return _of_docker(self._real, self._reason, "containers", name)


class _Api:
    """The low-level client (`APIClient`) of Docker's library, for machines without Docker."""

    base_url = "http+docker://localhost"

    def __init__(self) -> None:
        self.headers: dict[str, str] = {}


class DockerClient:
    """The client of Docker's library. Without Docker, only networks and stand-ins are available."""

    def __init__(self, real: Any = None, reason: str = "") -> None:
        """Wrap `real`, a client of Docker's library, or None with the `reason` why Docker is not reached."""
        self._real = real
        self._reason = reason
        self.containers = DockerContainers(real, reason)
        self.networks = DockerNetworks(real)
        self.api: Any = _Api() if real is None else real.api

    @classmethod
    def from_env(cls, **options: Any) -> DockerClient:
        return cls(reason="the package docker is not installed")

    def ping(self) -> bool:
        """Return True: the stand-ins can be used, with and without Docker."""
        return True

    def close(self) -> None:
        if self._real is not None:
            self._real.close()

    def __getattr__(self, name: str) -> Any:
        return _of_docker(self._real, self._reason, "", name)


from_env = DockerClient.from_env


def client_of(real: Callable[..., Any]) -> Callable[..., DockerClient]:
    """Return a replacement for the function `docker.from_env`; its clients also find the stand-ins."""

    def from_env(*arguments: Any, **options: Any) -> DockerClient:
        try:
            return DockerClient(real(*arguments, **options))
        except Exception as error:
            if type(error).__name__ != "DockerException":
                raise
            return DockerClient(reason=str(error))

    return from_env


def _of_docker(real: Any, reason: str, part: str, name: str) -> Any:
    """Return an attribute of Docker's own client, or of its `part`; raise `ContainerError` without Docker."""
    if name.startswith("__"):
        raise AttributeError(name)
    if real is not None:
        return getattr(getattr(real, part) if part else real, name)
    shown = ".".join(each for each in ("client", part, name) if each)
    raise ContainerError(
        f"{shown} needs Docker, which is not reached ({reason}); Penstock stands in for containers of Kafka"
        " and of its schema registry alone"
    )


class ContainerDockerClient:
    """The result of `get_docker_client` of a stand-in, with the methods of Testcontainers' `DockerClient`."""

    def __init__(self) -> None:
        self.client = DockerClient(reason="the container is a broker in this process")

    def host(self) -> str:
        return HOST

    def find_host_network(self) -> None:
        """Return None, as Testcontainers does on the machine on which Docker runs."""

    def get_container(self, container_id: str) -> dict[str, Any]:
        return self._found(container_id).attrs

    def port(self, container_id: str, port: int) -> str:
        return str(self._found(container_id).outer.get_exposed_port(port))

    def network_name(self, container_id: str) -> str:
        return next(iter(self._networks(container_id)))

    def bridge_ip(self, container_id: str) -> str:
        """Return the address by which other stand-ins find this one."""
        return str(next(iter(self._networks(container_id).values()))["IPAddress"])

    def gateway_ip(self, container_id: str) -> str:
        return HOST

    def run(self, image: str, *arguments: Any, **options: Any) -> NoReturn:
        raise ContainerError(f"{image} needs Docker: this client belongs to a broker in this process")

    def _networks(self, container_id: str) -> dict[str, Any]:
        found: dict[str, Any] = self.get_container(container_id)["NetworkSettings"]["Networks"]
        return found

    def _found(self, container_id: str) -> WrappedContainer:
        found = self.client.containers.get(container_id)
        assert isinstance(found, WrappedContainer)
        return found
