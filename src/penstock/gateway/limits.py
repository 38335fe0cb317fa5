"""The limits of a gateway: the connections and bytes that peers can make it hold."""

from __future__ import annotations

from dataclasses import dataclass, fields

from penstock.errors import ConfigError

READ_BYTES = 256 << 10
"""How much is read from a socket at a time. All connections read into one buffer of this size."""

INLINE_BYTES_MAX = 64 << 10
"""Frames up to this size are translated on the event loop; longer ones beside it."""

DECODED_FETCH_BYTES = 64 << 10
"""A Fetch response that may have endpoints is decoded up to this size; a longer one passes as it arrives."""

DUE_MAX = 1000
"""Requests of one connection whose responses are due; further ones stay in the socket."""

NODES_MAX = 1000
"""Brokers that get ports, where these are free ones and no range."""

CLIENTS_MAX = 1000
"""Kinds of client software that are counted apart; further ones are counted together."""

ANSWERS_BYTES_MAX = 1 << 20
"""Bytes of responses that are kept with what became of them, so that equal ones are not decoded again."""

TOKEN_BYTES_MAX = 512 << 10
"""A token of SASL without a header. Apache Kafka has the same limit (`sasl.server.max.receive.size`)."""

VERSIONS_BYTES_MAX = 64 << 10
"""A request of ApiVersions, which is collected to be looked at."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The limits of a gateway: numbers of connections, bytes and times, each at least 1."""

    connections_max: int = 10_000
    """Connections of clients. Further ones wait in the queue of the operating system."""
    frame_bytes_max: int = 100 << 20
    """A request or response that the gateway has to decode. A larger one ends its connection."""
    request_bytes_max: int = 100 << 20
    """A request that is passed on as bytes: as much as brokers take (`socket.request.max.bytes`)."""
    held_bytes_max: int = 512 << 20
    """Bytes of frames that are being decoded, and bytes that wait for a socket, of all connections together.

    A connection that needs more ends; above half of it every connection reads 16 KiB at a time.
    """
    idle_ms: int = 900_000
    """A client that sends nothing and is owed nothing for so long is disconnected."""

    login_ms: int = 30_000
    """A client that has not logged in for so long is disconnected, where clients log in at the gateway.

    So is one whose TLS handshake takes so long.
    """

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ConfigError(f"{field.name} is {value!r}: a number of at least 1 is needed")
