"""The limits of a gateway: connections, sizes of requests and buffers, and times."""

from __future__ import annotations

from dataclasses import dataclass, fields

from penstock.errors import ConfigError

READ_BYTES = 256 << 10
"""Size in bytes of the read buffer, which all connections share."""

INLINE_BYTES_MAX = 64 << 10
"""The largest frame that is translated on the event loop; larger ones are translated in a thread."""

DECODED_FETCH_BYTES = 64 << 10
"""The largest Fetch response that is decoded to replace addresses of leaders (KIP-951); in larger ones these
are hidden while the bytes are forwarded."""

DUE_MAX = 1000
"""The most requests of a connection that await responses; further requests are not read."""

NODES_MAX = 1000
"""The most brokers that get ports, if `ports` names no range."""

CLIENTS_MAX = 1000
"""The most kinds of client software that are counted separately; further ones are counted together."""

ANSWERS_BYTES_MAX = 1 << 20
"""Largest total size of the cached responses with replaced addresses."""

TOKEN_BYTES_MAX = 512 << 10
"""The largest SASL token without a header, as in Apache Kafka (`sasl.server.max.receive.size`)."""

VERSIONS_BYTES_MAX = 64 << 10
"""The largest ApiVersions request, which the gateway collects to decode it."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The limits of a gateway: numbers of connections, bytes and times, each at least 1."""

    connections_max: int = 10_000
    """The most connections of clients. Further ones wait in the operating system's queue."""
    frame_bytes_max: int = 100 << 20
    """The largest request or response that the gateway decodes. A larger one ends its connection."""
    request_bytes_max: int = 100 << 20
    """The largest request that is forwarded as bytes: as much as brokers accept
    (`socket.request.max.bytes`)."""
    held_bytes_max: int = 512 << 20
    """Largest total size of frames being decoded and of unsent data, of all connections together. A
    connection that needs more ends. Above half of this limit every connection reads 16 KiB at a time."""
    idle_ms: int = 900_000
    """Milliseconds without traffic after which a client without pending requests is disconnected."""

    login_ms: int = 30_000
    """Timeout in milliseconds of TLS handshakes, and of logins if clients log in at the gateway."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ConfigError(f"{field.name} is {value!r}: a number of at least 1 is needed")
