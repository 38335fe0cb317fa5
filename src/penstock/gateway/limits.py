"""The limits of a gateway: connections, sizes of requests and buffers, and times."""

from __future__ import annotations

from dataclasses import dataclass, fields

from penstock.errors import ConfigError

READ_BYTES = 256 << 10
"""Size in bytes of the read buffer, which all connections share."""

INLINE_BYTES_MAX = 64 << 10
"""The largest frame, in bytes, that is translated on the event loop; larger ones are translated in a thread.
"""

DECODED_FETCH_BYTES = 64 << 10
"""The largest Fetch response, in bytes, in which addresses of new leaders (KIP-951) are replaced, which
requires decoding. In larger responses the addresses are hidden while the bytes are forwarded."""

DUE_MAX = 1000
"""The most requests of a connection that may await responses. At this number, the gateway stops reading
requests.
"""

NODES_MAX = 1000
"""The most brokers that get ports, if the `ports` argument of `Gateway` gives no range."""

CLIENTS_MAX = 1000
"""The most kinds of clients (by software) that are counted separately; all others are counted together."""

ANSWERS_BYTES_MAX = 1 << 20
"""The largest total size, in bytes, of the cache of responses in which broker addresses are replaced."""

TOKEN_BYTES_MAX = 512 << 10
"""The largest raw SASL token, in bytes, as in Apache Kafka (`sasl.server.max.receive.size`)."""

VERSIONS_BYTES_MAX = 64 << 10
"""The largest ApiVersions request in bytes. The gateway reads such a request completely and decodes it."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The limits of a gateway: numbers of connections, bytes and times, each at least 1."""

    connections_max: int = 10_000
    """The most connections of clients. Further connections wait in the operating system's queue."""
    frame_bytes_max: int = 100 << 20
    """The largest request or response, in bytes, that the gateway decodes. A larger one ends its connection.
    """
    request_bytes_max: int = 100 << 20
    """The largest request, in bytes, that is forwarded without decoding: the default is that of brokers
    (`socket.request.max.bytes`)."""
    held_bytes_max: int = 512 << 20
    """The largest total size, in bytes, of unsent data and of frames being decoded, over all connections. A
    connection that would exceed the limit is closed. Above half of this limit every connection reads 16
    KiB at a time."""
    idle_ms: int = 900_000
    """Milliseconds without traffic after which the gateway disconnects a client that awaits no response."""

    login_ms: int = 30_000
    """Timeout in milliseconds of TLS handshakes, and of logins if clients log in at the gateway."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ConfigError(f"{field.name} is {value!r}: a number of at least 1 is needed")
