"""Stand-ins for the container objects of Docker's library, which are found by id, name and address."""

from __future__ import annotations

import itertools
import uuid
import weakref
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol

from penstock.errors import PenstockError

HOST = "127.0.0.1"


class ContainerError(PenstockError, RuntimeError):
    """Raised for an operation that needs Docker, or a container that runs."""


class ExecResult(NamedTuple):
    """The result of a command in the container: exit code and output."""

    exit_code: int
    output: bytes


class ContainerOwner(Protocol):
    """The interface of a stand-in container that its `WrappedContainer` calls."""

    port: int
    chosen_name: str | None
    serves_kafka: bool

    def names(self) -> list[str]: ...
    def network_name(self) -> str: ...
    def get_bootstrap_server(self) -> str: ...
    def get_exposed_port(self, port: int | str) -> int: ...
    def exec(self, command: Any) -> ExecResult: ...


BROKERS: weakref.WeakValueDictionary[str, ContainerOwner] = weakref.WeakValueDictionary()
"""A dict from the names and addresses that containers use in their network to the stand-ins of brokers."""


class ContainerProcess(Protocol):
    """The program in a container: a broker or a schema registry."""

    @property
    def is_running(self) -> bool: ...
    def start(self) -> object: ...
    def close(self) -> object: ...
    def restart(self) -> object: ...
    def kill(self) -> object: ...
    def pause(self) -> object: ...
    def resume(self) -> object: ...


class WrappedContainer:
    """The stand-in for the container object of Docker's library, with the methods that tests use."""

    _numbers = itertools.count(1)

    def __init__(self, outer: ContainerOwner, process: ContainerProcess, lines: list[str]) -> None:
        number = next(self._numbers)
        self.outer = outer
        self.id = uuid.uuid4().hex * 2
        self.short_id = self.id[:12]
        self.name = outer.chosen_name or f"penstock-{number}"
        self.address = f"127.77.{number >> 8 & 255}.{number & 255}"
        """A loopback address unique to this container, under which other stand-ins find it; nothing listens
        there."""
        self.networks = {outer.network_name(): [*outer.names()]}
        """A dict from the names of the container's networks to the container's names in them."""
        self.labels: dict[str, str] = {}
        self.is_removed = False
        self.is_paused = False
        self._process = process
        stamp = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S,%f")[:-3]
        self._text = "".join(f"[{stamp}] INFO {line}\n" for line in lines)
        CONTAINERS[self.id] = self
        self._be_found_by(self.address, self.name, *outer.names())

    def join(self, network: str, aliases: Iterable[str]) -> None:
        """Connect the container to a network, in which it has the further names `aliases`."""
        self.networks[network] = [*self.outer.names(), *aliases]
        self._be_found_by(*aliases)

    def _be_found_by(self, *names: str) -> None:
        """Register further names of a broker.

        A registry's names are not registered: it may share a broker's alias."""
        if self.outer.serves_kafka:
            BROKERS.update(dict.fromkeys(names, self.outer))

    @property
    def status(self) -> str:
        """Return the container's status: ``running``, ``paused`` or ``exited``."""
        if not self._process.is_running:
            return "exited"
        return "paused" if self.is_paused else "running"

    @property
    def ports(self) -> dict[str, Any]:
        """The port of this machine for the container's served port, in the format of Docker's library."""
        if not self._process.is_running:
            return {}
        port = str(self.outer.get_exposed_port(self.outer.port))
        return {f"{self.outer.port}/tcp": [{"HostIp": HOST, "HostPort": port}]}

    @property
    def attrs(self) -> dict[str, Any]:
        """The part of Docker's ``inspect`` output that tests and Testcontainers' wait strategies read."""
        networks = {
            name: {"IPAddress": self.address, "Gateway": HOST, "Aliases": aliases}
            for name, aliases in self.networks.items()
        }
        return {
            "Id": self.id,
            "Name": f"/{self.name}",
            "State": {"Status": self.status, "Running": self.status == "running", "ExitCode": 0},
            "NetworkSettings": {"IPAddress": self.address, "Ports": self.ports, "Networks": networks},
        }

    def logs(self, stdout: bool = True, stderr: bool = True, **options: object) -> bytes:
        return self._text.encode() if stdout else b""

    def reload(self) -> None:
        """Do nothing: `status` is always current."""

    def pause(self) -> None:
        self._process.pause()
        self.is_paused = True

    def unpause(self) -> None:
        self._process.resume()
        self.is_paused = False

    def start(self) -> None:
        """Start the stopped container again, with the same port and data."""
        self._refuse_removed()
        self._process.start()

    def stop(self, **options: object) -> None:
        self._process.close()

    def restart(self, **options: object) -> None:
        self._refuse_removed()
        self._process.restart()

    def kill(self, signal: object = None) -> None:
        self._process.kill()

    def remove(self, **options: object) -> None:
        self._process.close()
        self.is_removed = True

    def exec_run(self, cmd: str | list[str], **options: object) -> ExecResult:
        """Run one of Kafka's tools, as `BrokerContainer.exec` does."""
        return self.outer.exec(cmd)

    def put_archive(self, path: str, data: object) -> bool:
        """Return True without storing the file: a broker in this process has no container file system."""
        return True

    def _refuse_removed(self) -> None:
        if self.is_removed:
            raise ContainerError("this container was removed; call start() of the one that made it")


CONTAINERS: weakref.WeakValueDictionary[str, WrappedContainer] = weakref.WeakValueDictionary()
"""A dict from id to the stand-in for a container object of Docker's library."""
