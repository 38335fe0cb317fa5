"""`Session`: the state of one connection, shared by handlers, quotas, interceptors and metrics.

A session begins and ends with its connection. The principal is `User:ANONYMOUS` until a mechanism has
authenticated the client.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, TypeVar


class Principal(NamedTuple):
    """An authenticated identity, written ``User:alice``."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


ANONYMOUS = Principal("User", "ANONYMOUS")
"""The principal of a client that has not been authenticated, as in Apache Kafka."""

PLAINTEXT = "PLAINTEXT"


class SessionResource(Protocol):
    """The interface of state that belongs to one connection and ends with it, such as its fetch sessions."""

    def close(self) -> None:
        """Release the resource; called once, when the connection has ended."""


R = TypeVar("R", bound=SessionResource)


class Session:
    """The state of one connection, from its acceptance to its end."""

    __slots__ = (
        "_resources",
        "advertised_address",
        "client_address",
        "client_id",
        "client_port",
        "connection_id",
        "is_token",
        "listener_name",
        "local_address",
        "mechanism",
        "principal",
        "security_protocol",
        "software_name",
        "software_version",
    )

    def __init__(
        self,
        connection_id: int = 0,
        client_address: str = "",
        local_address: tuple[str, int] = ("127.0.0.1", 0),
        listener_name: str = PLAINTEXT,
        security_protocol: str = PLAINTEXT,
        advertised_address: tuple[str, int] | None = None,
        client_port: int = 0,
    ) -> None:
        self.connection_id = connection_id
        """The number of the connection, unique in the broker, which counts from 1."""
        self.client_address = client_address
        """IP address of the client, without the port."""
        self.client_port = client_port
        """The client's port; 0 if it is unknown."""
        self.local_address = local_address
        """The broker's host and port to which the client has connected."""
        self.advertised_address = advertised_address or local_address
        """The host and port to which clients of this listener should connect, as in Metadata responses."""
        self.listener_name = listener_name
        self.security_protocol = security_protocol
        """PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."""
        self.client_id: str | None = None
        """The client id in the header of the connection's latest request."""
        self.software_name: str | None = None
        """Name of the client library, from ApiVersions version 3 or later (KIP-511)."""
        self.software_version: str | None = None
        self.principal = ANONYMOUS
        self.mechanism: str | None = None
        """The SASL mechanism that has authenticated the principal; None without SASL."""
        self.is_token = False
        """True if the client logged in with a delegation token instead of a password."""
        self._resources: dict[type[SessionResource], SessionResource] | None = None
        """A dict from class to resource with the state that handlers keep for this connection; None
        before the first one.
        """

    def resource(self, kind: type[R]) -> R | None:
        """Return this connection's resource of a class, or None if there is none."""
        if self._resources is None:
            return None
        found = self._resources.get(kind)
        return found if isinstance(found, kind) else None

    def keep(self, resource: SessionResource) -> None:
        """Attach a resource to this connection until it ends; an earlier one of its class is replaced."""
        if self._resources is None:
            self._resources = {}
        self._resources[type(resource)] = resource

    def release(self) -> None:
        """Close all resources, because the connection has ended."""
        if self._resources is not None:
            for resource in self._resources.values():
                resource.close()

    def __repr__(self) -> str:
        return f"<Session {self.connection_id} of {self.principal} at {self.client_address or 'no address'}>"
