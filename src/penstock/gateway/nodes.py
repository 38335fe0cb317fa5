"""The brokers behind a gateway: the address of each, and its port at the gateway.

This module does no I/O: it calls the function `listen` to open a port. A broker keeps its port
while it cannot be reached. With a range of ports, broker N gets the N-th port, modulo the number of ports, so
that ports are the same after a restart, and at another gateway of the same cluster.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from typing import NamedTuple

from penstock.client.addresses import Address
from penstock.common.logs import logger_named
from penstock.gateway.limits import ANSWERS_BYTES_MAX, NODES_MAX

logger = logger_named("penstock.gateway")


class GatewayNode:
    """One broker: its id, its address in the cluster, and its port at the gateway."""

    __slots__ = ("address", "is_away", "node_id", "port", "seen")

    def __init__(self, node_id: int, address: Address, port: int) -> None:
        self.node_id = node_id
        self.address = address
        self.port = port
        self.is_away = False
        """True if the last attempt to reach the broker failed; the gateway then retries in the background."""
        self.seen = 0
        """A sequence number: the higher, the more recently a response contained this broker. The broker
        with the lowest number loses its port first.
        """


class NodeAddress(NamedTuple):
    """The id, host and port of a broker, as a response contains them."""

    node_id: int
    host: str
    port: int


class MovedAnswers:
    """A cache of responses in which broker addresses are replaced; cleared when an address changes.

    Clients request Metadata often, and mostly get the same response. When the cache exceeds
    `ANSWERS_BYTES_MAX` bytes, all entries are dropped.
    """

    def __init__(self) -> None:
        self._moved: dict[tuple[int, str, bytes], bytes] = {}
        self._size = 0
        self.clearings = 0

    def of(self, code: int, host: str, rest: bytes) -> bytes | None:
        """Return the cached response with replaced addresses, without size and correlation id, or None.

        `rest` is the original response, without size and correlation id. `code` is
        ``(api_key << 16) | version``, and `host` the advertised host.
        """
        return self._moved.get((code, host, rest))

    def keep(self, code: int, host: str, rest: bytes, moved: bytes) -> None:
        """Add to the cache an original response, and its copy with replaced addresses."""
        size = len(rest) + len(moved)
        if self._size + size > ANSWERS_BYTES_MAX:
            self.clear()
        if size <= ANSWERS_BYTES_MAX:
            self._moved[code, host, rest] = moved
            self._size += size

    def clear(self) -> None:
        """Drop all entries, because the address of a broker has changed."""
        self.clearings += 1
        self._moved.clear()
        self._size = 0


class Nodes:
    """The brokers of the cluster that responses have named, by broker id, with their ports at the gateway.

    Args:
        ports: the ports for brokers; empty for any free port.
        listen: opens a port (0 for any) for a broker id, and returns the port number; raises OSError.
        stop: closes the port of a broker id.
    """

    def __init__(
        self, ports: Sequence[int], listen: Callable[[int, int], int], stop: Callable[[int], None]
    ) -> None:
        self.by_id: dict[int, GatewayNode] = {}
        self.answers = MovedAnswers()
        self._ports = ports
        self._listen = listen
        self._stop = stop
        self._responses = 0

    def learn(self, broker: NodeAddress) -> GatewayNode | None:
        """Store a broker's address; return its node, or None if the address is invalid or no port is left."""
        node_id = broker.node_id
        if node_id < 0 or not broker.host or not 0 < broker.port < 65536:
            return None
        self._responses += 1
        address = Address(broker.host, broker.port)
        node = self.by_id.get(node_id)
        if node is None:
            port = self._open(node_id)
            self.answers.clear()  # without a port too: the next response tries again
            if port is None:
                return None
            node = self.by_id[node_id] = GatewayNode(node_id, address, port)
            logger.info("broker %d at %s is found at port %d", node_id, address, port)
        elif node.address != address:
            logger.info("broker %d has moved from %s to %s", node_id, node.address, address)
            self.answers.clear()
            node.address = address
            node.is_away = False
        node.seen = self._responses
        return node

    def _open(self, node_id: int) -> int | None:
        """Open a port for a new broker, and return it, or None if no port is left.

        If there are too many brokers, a port is taken from an unreachable broker: the one that responses have
        not contained for the longest time.
        """
        most = len(self._ports) or NODES_MAX
        if len(self.by_id) >= most:
            oldest = min((n for n in self.by_id.values() if n.is_away), key=lambda n: n.seen, default=None)
            if oldest is None:
                logger.error(
                    "no port is left for broker %d: %d brokers have one; give --ports a longer range",
                    node_id,
                    len(self.by_id),
                )
                return None
            del self.by_id[oldest.node_id]
            self._stop(oldest.node_id)
        taken = {node.port for node in self.by_id.values()}
        for step in range(max(1, len(self._ports))):
            wanted = self._ports[(node_id + step) % len(self._ports)] if self._ports else 0
            if wanted and wanted in taken:
                continue
            try:
                return self._listen(node_id, wanted)
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    logger.error("broker %d cannot be listened for at port %d: %s", node_id, wanted, error)
                    return None
                logger.warning("port %d, for broker %d, is taken by another program", wanted, node_id)
        logger.error("no port is free for broker %d; give --ports another range", node_id)
        return None
